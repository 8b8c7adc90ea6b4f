//! Commands with their arguments in one expression.

/// `command!("GET", key)` is the command `GET` with one argument.
macro_rules! command {
    ($name:expr $(, $argument:expr)* $(,)?) => {{
        #[allow(unused_mut, reason = "a command may have no arguments")]
        let mut command = redis::cmd($name);
        $(command.arg($argument);)*
        command
    }};
}
