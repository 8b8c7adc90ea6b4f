//! Commands in wire format, written directly because a batch has twenty
//! arguments per key.

use redis::Cmd;

/// Consecutive commands in Redis's protocol: `*arguments`, then each argument
/// with its length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) commands: usize,
}

impl Packed {
    /// Begins a command with this many arguments, including its name.
    pub(crate) fn begin(&mut self, arguments: usize) {
        self.commands += 1;
        self.line(b'*', arguments as u64);
    }

    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        self.line(b'$', text.len() as u64);
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// An argument that is a number.
    pub(crate) fn number(&mut self, number: u64) {
        let mut buffer = [0; 20];
        let digits = digits(number, &mut buffer);
        self.text(digits);
    }

    /// Appends packed arguments.
    pub(crate) fn raw(&mut self, arguments: &[u8]) {
        self.bytes.extend_from_slice(arguments);
    }

    fn line(&mut self, mark: u8, number: u64) {
        let mut buffer = [0; 20];
        let digits = digits(number, &mut buffer);
        self.bytes.push(mark);
        self.bytes.extend_from_slice(digits);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// The separate commands, for links that can't send bytes.
    pub(crate) fn unpack(&self) -> Vec<Cmd> {
        let mut rest = &self.bytes[..];
        let mut commands = Vec::with_capacity(self.commands);
        while !rest.is_empty() {
            let arguments = number(&mut rest);
            let mut command = Cmd::with_capacity(arguments, arguments * 8);
            for _ in 0..arguments {
                command.arg(argument(&mut rest));
            }
            commands.push(command);
        }
        commands
    }

    /// The names of the commands.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let arguments = number(&mut rest);
            let name = argument(&mut rest);
            for _ in 1..arguments {
                argument(&mut rest);
            }
            Some(name)
        })
    }
}

/// Reads the number in a line: of arguments, or of bytes.
fn number(rest: &mut &[u8]) -> usize {
    let end = rest.iter().position(|b| *b == b'\r').unwrap_or(rest.len());
    let number = rest[1..end]
        .iter()
        .fold(0, |n, digit| n * 10 + usize::from(digit - b'0'));
    *rest = &rest[end + 2..];
    number
}

fn argument<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let len = number(rest);
    let (argument, behind) = rest.split_at(len);
    *rest = &behind[2..];
    argument
}

impl From<&[Cmd]> for Packed {
    fn from(commands: &[Cmd]) -> Self {
        let mut bytes = Vec::new();
        for command in commands {
            command.write_packed_command(&mut bytes);
        }
        Self {
            bytes,
            commands: commands.len(),
        }
    }
}

fn digits(mut number: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_redis_crate() {
        let mut packed = Packed::default();
        let mut commands = Vec::new();
        for number in [0, 7, 10, 65_535, u64::MAX] {
            packed.begin(4);
            packed.text("SET");
            packed.text(b"a\r\nkey");
            packed.number(number);
            packed.raw(b"$0\r\n\r\n");
            commands.push(redis::cmd("SET").arg("a\r\nkey").arg(number).arg("").take());
        }
        let theirs = Packed::from(&commands[..]);
        assert_eq!(packed.bytes, theirs.bytes);
        assert_eq!(packed.commands, 5);
        let again = Packed::from(&packed.unpack()[..]);
        assert_eq!(again.bytes, packed.bytes);
        assert_eq!(packed.names().collect::<Vec<_>>(), [b"SET"; 5]);
    }
}
