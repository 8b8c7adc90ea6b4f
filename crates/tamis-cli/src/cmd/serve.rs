use crate::foreign::{self, ForeignArgs};
use crate::location::{KeyFile, Place, PlaceParser};
use crate::{Exit, human};
use anyhow::{Result, anyhow, bail};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tamis_formats::Format;
use tamis_serve::{FilterPlace, ForeignOptions, Limits, Named, Settings, Writing};

/// Serve filters over HTTP, with a page to explore them
///
/// Answers at http://127.0.0.1:7654/ until SIGTERM or Ctrl-C. A filter is named
/// NAME or after its file, without the extension. To replace a file, build a new
/// one and rename it over the old one; the service switches over without a gap.
/// Without filters, the page still has the calculator and the playground. A window
/// is asked and added to as of now, or of the time that a request gives (?at=TIME).
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis serve blocked.tamis
  curl --data-binary @senders.txt http://127.0.0.1:7654/v1/filters/blocked/check
  tamis serve --write --token-file token seen.tamis urls=redis://10.0.0.7/seen
  tamis serve --listen 0.0.0.0:443 --host filters.example.org \\
    --tls-cert cert.pem --tls-key key.pem blocked.tamis
  tamis serve --save-page site        its page, for any web server")]
pub(crate) struct Args {
    /// The filters: files, or redis://HOST:PORT/DB/NAME
    #[arg(value_name = "[NAME=]FILTER", value_parser = NamedParser)]
    filters: Vec<Named>,

    /// The address and port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7654")]
    listen: SocketAddr,

    /// Let clients that have the token of --token-file add keys
    #[arg(long, requires = "token_file")]
    write: bool,

    /// The token that allows writing, sent as "Authorization: Bearer TOKEN"; created if missing
    #[arg(long, value_name = "FILE", requires = "write")]
    token_file: Option<PathBuf>,

    /// Answer only clients that have this token, or that of --token-file; created if missing
    ///
    /// Without it, whoever reaches the port can ask. /healthz, /readyz and the page stay open.
    #[arg(long, value_name = "FILE")]
    read_token_file: Option<PathBuf>,

    /// Save additions this often, and confirm them before they are saved
    ///
    /// By default, an addition is confirmed once it is on disk. With this, a
    /// crash loses what was added since the last save.
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration, requires = "write")]
    save_every: Option<Duration>,

    /// A host name of the service, besides IP addresses and localhost; may be given several times
    ///
    /// Requests for other names are refused: otherwise a page open in a browser
    /// could point a name of its own here (DNS rebinding).
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,

    /// Use TLS with this certificate (PEM), followed by its intermediate certificates
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// The largest request body to accept
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = human::parse_size)]
    max_body: u64,

    /// How long a client may take to send a request, or to read all of an answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = human::parse_duration)]
    timeout: Duration,

    /// How many clients may be connected at the same time; fewer if the system allows too few open files
    #[arg(long, value_name = "N", default_value_t = 1000)]
    max_connections: u32,

    /// Write the page into this folder, for any web server, and end
    ///
    /// The calculator, the playground and the reasons behind them work without a
    /// service, and so do filter files that are dropped on the page: the library is part
    /// of it, as WebAssembly. The folder is made if it is missing, and may be any path
    /// of a site. A page of an earlier version is replaced; next to other files nothing
    /// is written.
    #[arg(long, value_name = "DIR", exclusive = true)]
    save_page: Option<PathBuf>,

    /// Serve no page, and nothing that is there for it: no /, /v1/plan and /v1/playground
    #[arg(long)]
    no_page: bool,

    /// Ask the service at --listen whether it runs, then end: exit code 0 if so, else 1
    ///
    /// For images and units without an HTTP client. With --tls-cert, the question is
    /// asked over TLS, and the answer must come from that certificate's holder.
    #[arg(long, conflicts_with_all = ["filters", "write", "token_file", "read_token_file", "no_page"])]
    health: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    foreign: ForeignArgs,
}

/// The timeout of a probe: shorter than the default timeout of callers.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);

fn probe(args: &Args) -> Exit {
    match tamis_serve::probe(args.listen, args.tls_cert.as_deref(), PROBE_PATIENCE) {
        Ok(()) => Exit::Done,
        Err(error) => {
            say!("tamis: {error:#}");
            Exit::NoneFound
        }
    }
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if let Some(dir) = &args.save_page {
        return super::page::save(dir);
    }
    if args.health {
        return Ok(probe(&args));
    }
    if args.tls_cert.is_some() && args.tls_key.is_none() {
        bail!("--tls-cert: expected --tls-key as well, the certificate's private key");
    }
    if let Some(format @ (Format::Redisson | Format::Bitmap)) = args.foreign.format() {
        bail!(
            "--format {format}: such a filter is in Redis, or says nothing of itself, and is not served"
        );
    }
    let is_in_redis = |named: &Named| matches!(named.place, FilterPlace::Redis(_));
    let redis = if args.filters.iter().any(is_in_redis) {
        args.key.redis_options()?
    } else {
        tamis_redis::Options::new()
    };
    let served = tamis_serve::run(Settings {
        filters: args.filters,
        listen: args.listen,
        hosts: args.host,
        tls: args.tls_cert.zip(args.tls_key),
        token: args.token_file,
        read_token: args.read_token_file,
        writing: match (args.write, args.save_every) {
            (false, _) => Writing::No,
            (true, None) => Writing::AtOnce,
            (true, Some(interval)) => Writing::Every(interval),
        },
        limits: Limits {
            body: usize::try_from(args.max_body).unwrap_or(usize::MAX),
            time: args.timeout,
            connections: args.max_connections.max(1) as usize,
        },
        has_page: !args.no_page,
        open: args.key.open()?,
        foreign: ForeignOptions {
            format: args.foreign.format(),
            keys: args.foreign.keys(),
            hash: args.foreign.file_hash(),
            name: args.foreign.name().map(str::to_owned),
            most_unpacked: args.foreign.most_unpacked(),
        },
        redis,
    });
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(match hint(&error) {
            Some(hint) => anyhow!("{error:#}\nhint: {hint}"),
            None => error,
        }),
    }
}

/// What the user can do about a service error.
fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref() {
            return foreign::hint(error);
        }
        match cause.downcast_ref()? {
            tamis::Error::KeyNeeded => Some("pass --secret-file".into()),
            _ => None,
        }
    })
}

/// Parses `[NAME=]FILTER`.
#[derive(Clone)]
struct NamedParser;

impl TypedValueParser for NamedParser {
    type Value = Named;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        text: &OsStr,
    ) -> Result<Named, clap::Error> {
        // The name ends at the first `=`; a path or URL may contain more.
        let named = text.to_str().and_then(|text| text.split_once('='));
        let (name, rest) = match named.filter(|(name, _)| is_name(name)) {
            Some((name, rest)) => (Some(name.to_owned()), OsStr::new(rest)),
            None => (None, text),
        };
        let place = PlaceParser.parse_ref(command, argument, rest)?;
        let own = match &place {
            Place::File(path) => path.file_stem().and_then(OsStr::to_str),
            Place::Redis(at) => Some(at.name()),
        };
        let Some(name) = name.or_else(|| Some(own.filter(|own| is_name(own))?.to_owned())) else {
            let text = format!(
                "{place} needs a name of letters, digits, '.', '_' and '-'\n\
                 hint: NAME=FILTER names it\n"
            );
            return Err(clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command));
        };
        let place = match place {
            Place::File(path) => FilterPlace::File(path),
            Place::Redis(at) => FilterPlace::Redis(at),
        };
        Ok(Named { name, place })
    }
}

/// Whether a name needs no escapes in a URL path, and isn't `.` or `..`.
fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !name.is_empty() && name.bytes().all(is_plain) && name != "." && name != ".."
}
