use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::ip_range::IpRange;
use crate::base::Code;
use crate::format::{Acl, AclBuf, AclEntry, AclList, Perms};

/// Who a request comes from, as one scheme tells it. A connection has several: its address at least.
///
/// The server has authenticated it; nothing here does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    /// `digest`, `ip`, `x509`, or any other word. Who has `super` may do everything.
    pub scheme: String,
    /// The identity, as the scheme writes it.
    pub id: String,
}

impl Identity {
    /// An identity.
    pub fn new(scheme: impl Into<String>, id: impl Into<String>) -> Identity {
        Identity { scheme: scheme.into(), id: id.into() }
    }

    /// Whether an entry of the scheme `auth` means it: an address or a superuser was not asked for a proof of its own.
    fn is_authenticated(&self) -> bool {
        !matches!(self.scheme.as_str(), "ip" | "world" | "auth" | "super")
    }
}

/// Whether one of these identities may do what one of the `wanted` permissions allows.
///
/// An empty list allows everything. Otherwise an entry of the list has to grant it: `world:anyone` to everybody, `ip`
/// to the addresses in its range, any other to the identity that is the same to the letter. An entry that is
/// malformed, or of the scheme `auth` (which is expanded before it is stored), grants nothing.
///
/// Source: ZooKeeper's `ZooKeeperServer.checkACL`.
pub fn acl_allows(list: AclList<'_>, identities: &[Identity], wanted: Perms) -> bool {
    list.is_empty()
        || identities.iter().any(|identity| identity.scheme == "super")
        || list.iter().any(|entry| entry.perms.any_of(wanted) && means_one_of(entry, identities))
}

/// What a list grants to everybody.
pub(super) fn granted_to_anyone(list: AclList<'_>) -> Perms {
    let to_anyone = list.iter().filter(|entry| means_one_of(*entry, &[]));
    to_anyone.fold(Perms::new(0), |perms, entry| perms | entry.perms)
}

fn means_one_of(entry: AclEntry<'_>, identities: &[Identity]) -> bool {
    match entry.scheme {
        "world" => entry.id == "anyone",
        "auth" => false,
        "ip" => IpRange::parse(entry.id).is_some_and(|range| {
            identities.iter().any(|identity| identity.scheme == "ip" && range.contains(&identity.id))
        }),
        scheme => identities.iter().any(|identity| identity.scheme == scheme && identity.id == entry.id),
    }
}

/// The list that is stored for one that was asked for: duplicates are left out, and an entry of the scheme `auth` is
/// replaced by one for each identity of the requester that was authenticated.
///
/// `is_known` tells of a scheme other than `world`, `auth`, `ip` and `digest` whether the server has it.
///
/// Source: ZooKeeper's `PrepRequestProcessor.fixupACL`.
///
/// # Errors
/// [`Code::INVALID_ACL`] if the list is empty, an `auth` entry finds nobody, a scheme is unknown, or an id is not
/// of its scheme's form.
pub fn fix_acl(
    list: &[Acl],
    identities: &[Identity],
    is_known: impl Fn(&str) -> bool,
) -> Result<AclBuf, Code> {
    if list.is_empty() {
        return Err(Code::INVALID_ACL);
    }
    let mut fixed = AclBuf::new();
    for (at, acl) in list.iter().enumerate() {
        if list[..at].contains(acl) {
            continue;
        }
        let entry = acl.as_entry();
        if entry.scheme == "auth" {
            expand(entry.perms, identities, &is_known, &mut fixed)?;
        } else if is_valid(entry, &is_known) {
            fixed.push(entry);
        } else {
            return Err(Code::INVALID_ACL);
        }
    }
    Ok(fixed)
}

fn expand(
    perms: Perms,
    identities: &[Identity],
    is_known: &impl Fn(&str) -> bool,
    fixed: &mut AclBuf,
) -> Result<(), Code> {
    let mut found = false;
    for Identity { scheme, id } in identities.iter().filter(|identity| identity.is_authenticated()) {
        let entry = AclEntry { perms, scheme, id };
        // An identity is not looked at for its form: it is what the server has made it.
        if (scheme == "digest" || is_known(scheme)) && fits(entry) {
            fixed.push(entry);
            found = true;
        }
    }
    if found { Ok(()) } else { Err(Code::INVALID_ACL) }
}

fn is_valid(entry: AclEntry<'_>, is_known: &impl Fn(&str) -> bool) -> bool {
    fits(entry)
        && match entry.scheme {
            "world" => entry.id == "anyone",
            "ip" => IpRange::parse(entry.id).is_some(),
            "digest" => is_digest_id(entry.id),
            scheme => is_known(scheme),
        }
}

/// Whether a list has room for it.
fn fits(entry: AclEntry<'_>) -> bool {
    u16::try_from(entry.scheme.len()).is_ok() && u32::try_from(entry.id.len()).is_ok()
}

/// Two parts and a colon between them. Colons at the end do not count, for they do not where Java splits a string.
fn is_digest_id(id: &str) -> bool {
    id.trim_end_matches(':').matches(':').count() == 1
}

/// The id of a `digest` entry, and of an identity that has shown the password: `user:base64(SHA1(user:password))`.
///
/// ZooKeeper's default. SHA-1 is no protection of a password against somebody who reads the id; see
/// [`mask_digest_ids`].
pub fn digest_id(user: &str, password: &str) -> String {
    let mut hash = sha1_smol::Sha1::from(user);
    hash.update(b":");
    hash.update(password.as_bytes());
    format!("{user}:{}", STANDARD.encode(hash.digest().bytes()))
}

/// The list as somebody may see it who has no [`Perms::ADMIN`] on the node: an id of the scheme `digest` is cut down
/// to the user, and `x` for the rest.
///
/// Source: ZooKeeper's `FinalRequestProcessor`, for `getACL`.
pub fn mask_digest_ids(list: AclList<'_>) -> AclBuf {
    let mut masked = AclBuf::new();
    for entry in list.iter() {
        if entry.scheme == "digest" {
            // Without a colon it is nobody's id; all of it may be secret.
            let user = entry.id.split_once(':').map_or("", |(user, _)| user);
            masked.push(AclEntry { id: &format!("{user}:x"), ..entry });
        } else {
            masked.push(entry);
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(Perms, &str, &str)]) -> AclBuf {
        entries.iter().map(|&(perms, scheme, id)| AclEntry { perms, scheme, id }).collect()
    }

    fn asked(entries: &[(&str, &str)]) -> Vec<Acl> {
        entries.iter().map(|&(scheme, id)| Acl::new(Perms::ALL, scheme, id)).collect()
    }

    fn known(scheme: &str) -> bool {
        ["x509", "sasl"].contains(&scheme)
    }

    #[test]
    fn an_entry_grants_by_any_bit_to_whom_it_means() {
        let bob = [Identity::new("ip", "10.1.2.3"), Identity::new("digest", "bob:h")];
        let allowed = |entry, wanted| {
            acl_allows(list(&[(Perms::new(0), "world", "anyone"), entry]).as_list(), &bob, wanted)
        };
        assert!(allowed((Perms::READ, "world", "anyone"), Perms::READ));
        assert!(allowed((Perms::READ, "world", "anyone"), Perms::READ | Perms::ADMIN), "any bit will do");
        assert!(!allowed((Perms::READ, "world", "anyone"), Perms::WRITE));
        assert!(!allowed((Perms::ALL, "world", "everyone"), Perms::READ));
        assert!(allowed((Perms::ALL, "digest", "bob:h"), Perms::WRITE));
        assert!(!allowed((Perms::ALL, "digest", "bob:H"), Perms::WRITE));
        assert!(!allowed((Perms::ALL, "sasl", "bob:h"), Perms::WRITE), "the scheme counts");
        assert!(!allowed((Perms::ALL, "auth", ""), Perms::WRITE));
        assert!(allowed((Perms::ALL, "ip", "10.0.0.0/8"), Perms::WRITE));
        assert!(!allowed((Perms::ALL, "ip", "11.0.0.0/8"), Perms::WRITE));
        assert!(!allowed((Perms::ALL, "ip", "nonsense"), Perms::WRITE));
    }

    #[test]
    fn an_empty_list_and_a_superuser_pass() {
        let closed = list(&[(Perms::ALL, "digest", "bob:h")]);
        assert!(acl_allows(AclList::EMPTY, &[], Perms::ADMIN));
        assert!(!acl_allows(closed.as_list(), &[], Perms::READ));
        assert!(acl_allows(closed.as_list(), &[Identity::new("super", "")], Perms::ADMIN));
    }

    #[test]
    fn lists_are_fixed_as_zookeeper_fixes_them() {
        let me = [
            Identity::new("ip", "10.1.2.3"),
            Identity::new("digest", "bob:h"),
            Identity::new("x509", "CN=bob"),
            Identity::new("super", ""),
            Identity::new("kerberos", "bob"),
        ];
        let fix = |entries: &[(&str, &str)]| fix_acl(&asked(entries), &me, known);
        let same = |entries: &[(&str, &str)]| {
            let entries: Vec<_> = entries.iter().map(|&(scheme, id)| (Perms::ALL, scheme, id)).collect();
            Ok(list(&entries))
        };
        for entries in [
            &[("world", "anyone")][..],
            &[("digest", "a:b"), ("ip", "10.0.0.0/8"), ("x509", "CN=a")],
            &[("digest", "a:b:")],
        ] {
            assert_eq!(fix(entries), same(entries));
        }
        assert_eq!(
            fix(&[("ip", "::1"), ("world", "anyone"), ("ip", "::1")]),
            same(&[("ip", "::1"), ("world", "anyone")])
        );
        assert_eq!(fix(&[("auth", "whatever")]), same(&[("digest", "bob:h"), ("x509", "CN=bob")]));
        let nobody = fix_acl(&asked(&[("auth", "")]), &me[..1], known);
        assert_eq!(nobody, Err(Code::INVALID_ACL));
        // Not even on a server that takes any word for a scheme.
        let expanded = fix_acl(&asked(&[("auth", "")]), &me, |_| true).unwrap();
        let schemes: Vec<_> = expanded.as_list().iter().map(|entry| entry.scheme).collect();
        assert_eq!(schemes, ["digest", "x509", "kerberos"]);
        for bad in [
            ("world", "me"),
            ("world", ""),
            ("digest", "a"),
            ("digest", "a:"),
            ("digest", "a:b:c"),
            ("digest", ""),
            ("ip", "10.0.0.1/33"),
            ("kerberos", "bob"),
            ("", ""),
            ("super", ""),
        ] {
            assert_eq!(fix(&[("world", "anyone"), bad]), Err(Code::INVALID_ACL), "{bad:?}");
        }
        assert_eq!(fix(&[]), Err(Code::INVALID_ACL));
        let long = "s".repeat(1 << 16);
        assert_eq!(fix_acl(&asked(&[(&long, "")]), &me, |_| true), Err(Code::INVALID_ACL));
    }

    #[test]
    fn duplicates_are_the_same_in_all_three() {
        let entries = [Acl::open(), Acl::new(Perms::READ, "world", "anyone"), Acl::open()];
        let fixed = fix_acl(&entries, &[], known).unwrap();
        assert_eq!(fixed.as_list().iter().count(), 2);
    }

    #[test]
    fn digests_are_made_and_masked() {
        // ZooKeeper's documentation has this pair for its superuser.
        assert_eq!(digest_id("super", "admin"), "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=");
        let shown = list(&[
            (Perms::ALL, "digest", "bob:xQJ="),
            (Perms::READ, "digest", "secret"),
            (Perms::READ, "ip", "10.0.0.1"),
        ]);
        let masked = list(&[
            (Perms::ALL, "digest", "bob:x"),
            (Perms::READ, "digest", ":x"),
            (Perms::READ, "ip", "10.0.0.1"),
        ]);
        assert_eq!(mask_digest_ids(shown.as_list()), masked);
    }
}
