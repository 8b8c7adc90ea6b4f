//! Names and words that occur in the texts.

pub(super) const SERVICES: [&str; 10] = [
    "billing", "cart", "catalog", "gateway", "identity", "mailer", "orders", "payments", "search",
    "stock",
];
pub(super) const FIRST: [&str; 20] = [
    "anna", "ben", "carla", "david", "elena", "felix", "greta", "hugo", "ines", "jan", "kira",
    "leo", "mia", "noah", "olga", "paul", "rosa", "sami", "tara", "yuki",
];
pub(super) const LAST: [&str; 24] = [
    "adams", "bauer", "chen", "dubois", "ek", "fischer", "garcia", "haas", "ito", "jansen",
    "keller", "lopez", "meier", "novak", "okafor", "petrov", "quinn", "rossi", "sato", "tanaka",
    "umar", "vogel", "weber", "zhang",
];
pub(super) const DOMAINS: [&str; 8] = [
    "example.org",
    "example.com",
    "mail.example.net",
    "post.test",
    "kontor.invalid",
    "shop.example",
    "univ.example.edu",
    "firma.test",
];
pub(super) const CITIES: [&str; 8] = [
    "Berlin", "Paris", "Osaka", "Lima", "Oslo", "Porto", "Cairo", "Quito",
];
pub(super) const NOUNS: [&str; 48] = [
    "account",
    "basket",
    "camera",
    "desk",
    "engine",
    "filter",
    "garden",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "lamp",
    "mirror",
    "needle",
    "orange",
    "pillow",
    "quilt",
    "ribbon",
    "saddle",
    "table",
    "umbrella",
    "velvet",
    "window",
    "yarn",
    "zipper",
    "anchor",
    "bottle",
    "carpet",
    "drawer",
    "easel",
    "fabric",
    "glove",
    "handle",
    "inkwell",
    "jigsaw",
    "kennel",
    "ladder",
    "magnet",
    "notebook",
    "oven",
    "pencil",
    "quiver",
    "rocket",
    "shelf",
    "teapot",
    "vase",
    "wagon",
    "xylophone",
];
pub(super) const EXCEPTIONS: [&str; 5] = [
    "IllegalStateException",
    "NullPointerException",
    "IndexOutOfBoundsException",
    "OutOfMemoryError",
    "UnsupportedOperationException",
];
pub(super) const AGENTS: [&str; 6] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/129.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0",
    "curl/8.9.1",
    "python-requests/2.32.3",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
];
