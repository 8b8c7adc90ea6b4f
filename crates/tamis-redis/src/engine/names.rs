//! What a key is for, judged by its name.

/// The role of a key, judged by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A chunk or the hash of the layers, with the filter's name and
    /// generation.
    Part(String, u64),
    Twin(String),
    Witness(String),
    /// A key that expires by itself.
    Passing,
    /// Perhaps a record.
    Other,
}

impl Role {
    pub(super) fn of(key: &str) -> Self {
        let generation = |text: &str| {
            let sound = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
            sound.then(|| u64::from_str_radix(text, 16).ok()).flatten()
        };
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // `{NAME}:…`
        if let Some((name, rest)) = key.strip_prefix('{').and_then(|key| key.split_once("}:")) {
            return match rest.split_once(':') {
                None if rest == "tamis" => Self::Twin(name.into()),
                None => generation(rest).map_or(Self::Other, |g| Self::Part(name.into(), g)),
                Some((g, _)) if generation(g).is_some() => Self::Passing,
                Some(_) => Self::Other,
            };
        }
        // `NAME:{generation.i.j}`, of a window also `NAME:{generation.i.j}:pN`, or of
        // a union `NAME:{generation.i.j}:ticket`.
        let Some((name, rest)) = key.split_once(":{") else {
            return Self::Other;
        };
        let Some((tag, behind)) = rest.split_once('}') else {
            return Self::Other;
        };
        if behind.is_empty() && tag.strip_prefix("witness.").is_some_and(number) {
            return Self::Witness(name.into());
        }
        let mut parts = tag.split('.');
        let sound = (parts.next().and_then(generation))
            .filter(|_| parts.next().is_some_and(number) && parts.next().is_some_and(number));
        match (sound, behind) {
            (Some(generation), behind)
                if behind.is_empty() || behind.strip_prefix(":p").is_some_and(number) =>
            {
                Self::Part(name.into(), generation)
            }
            (Some(_), _) => Self::Passing,
            (None, _) => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_names() {
        let part = |name: &str| Role::Part(name.into(), 0xab);
        for (key, role) in [
            ("seen:{00000000000000ab.0.17}", part("seen")),
            ("a:b/c:{00000000000000ab.12.3}", part("a:b/c")),
            ("{seen}:00000000000000ab", part("seen")),
            ("seen:{00000000000000ab.0.17}:p1234", part("seen")),
            ("seen:{00000000000000ab.0.17}:p-5", Role::Passing),
            ("seen:{00000000000000ab.0.17}:p", Role::Passing),
            ("{seen}:tamis", Role::Twin("seen".into())),
            ("a:b:{witness.17}", Role::Witness("a:b".into())),
            ("seen:{witness.17}:x", Role::Other),
            ("seen:{witness.}", Role::Other),
            ("{seen}:00000000000000ab:growing", Role::Passing),
            (
                "seen:{00000000000000ab.0.17}:0011223344556677",
                Role::Passing,
            ),
            ("seen", Role::Other),
            ("seen:{user1000}", Role::Other),
            ("seen:{00000000000000ab.0}", Role::Other),
            ("seen:{00000000000000ab.0.}", Role::Other),
            ("seen:{00000000000000a.0.1}", Role::Other),
            ("seen:{0000000000000+ab.0.1}", Role::Other),
            ("{seen}:other", Role::Other),
            ("{seen", Role::Other),
            (":{", Role::Other),
        ] {
            assert_eq!(Role::of(key), role, "{key}");
        }
    }
}
