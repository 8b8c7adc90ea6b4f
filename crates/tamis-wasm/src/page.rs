//! What the page without a server asks.
