use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use proptest::prelude::*;
use regex::Regex;
use serde_json::json;

use super::{Mask, sanitize, sanitize_value};

/// Each line before and after, under [`Mask::Everything`].
#[track_caller]
fn becomes(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let once = sanitize(text, Mask::Everything);
        assert_eq!(once, *expected, "{text}");
        assert_eq!(sanitize(&once, Mask::Everything), *expected, "again: {text}");
    }
}

#[track_caller]
fn stays(cases: &[&str]) {
    for text in cases {
        let clean = sanitize(text, Mask::Everything);
        assert!(matches!(clean, Cow::Borrowed(_)), "{text:?} became {clean:?}");
    }
}

#[test]
fn h2_addresses_of_people() {
    becomes(&[
        ("Write to jane.doe+x@mail.example.com.", "Write to [EMAIL]."),
        ("<jane@example.com>, 'bob@example.org'", "<[EMAIL]>, '[EMAIL]'"),
        ("mailto:jane@example.com?subject=x", "mailto:[EMAIL]?subject=x"),
        ("/users/jane%40example.com/posts", "/users/[EMAIL]/posts"),
        ("müller@bücher.example und x", "[EMAIL] und x"),
        ("联系jane@example.com谢谢", "联系[EMAIL]谢谢"),
        ("a@b.co,c@d.org;e_f@g-h.io", "[EMAIL],[EMAIL];[EMAIL]"),
    ]);
    stays(&[
        "@jane, see user@localhost and left-pad@1.3.0",
        "icon@2x.png and icon@3x.png",
        "git clone git@example.com:team/project.git",
        "5 @ 3.50 each",
        "a @ b.com",
    ]);
}

#[test]
fn h2_cards_with_a_right_check_digit() {
    becomes(&[
        ("4111111111111111", "[CARD]"),
        ("card 4111 1111 1111 1111, exp 12/30", "card [CARD], exp 12/30"),
        ("4111-1111-1111-1111", "[CARD]"),
        ("4111\u{a0}1111\u{a0}1111\u{a0}1111", "[CARD]"),
        ("3782 822463 10005", "[CARD]"),
        ("378282246310005 and 30569309025904", "[CARD] and [CARD]"),
        ("4222222222222", "[CARD]"),
        ("6304000000000000000", "[CARD]"),
        ("1234567812345670", "[CARD]"),
        ("item 12 5555 5555 5555 4444 7", "item 12 [CARD] 7"),
        ("4111 1111 1111 1111 5555 5555 5555 4444", "[CARD] [CARD]"),
        ("5105 105105 105100", "[CARD]"),
        ("my card is 1234567890123456", "my card is [CARD]"),
        ("Credit Card No.: 1234-5678-9012-3456", "Credit Card No.: [CARD]"),
        ("Kartennummer 4111 1111 1111 1112", "Kartennummer [CARD]"),
    ]);
    stays(&[
        "4111 1111 1111 1112",
        "0000 0000 0000 0000",
        "+49 170 1234567 and (415) 555-2671",
        "550e8400-e29b-41d4-a716-446655440000",
        "12345678-1234-4123-8123-123456789012",
        "2024-01-02 2024-01-03, 2026-10-05 1030",
        "1700000000004 1712345678901 1712345678901234567",
        "x4111111111111111 4111111111111111y",
        "41111111111111114111111111111111",
        "300 400 500 600 700",
        "IMEI 490154203237518",
        "EAN 4006381333931, ISBN 978-3-16-148410-0, order 4500012345678",
        "IBAN DE89 3704 0044 0532 0130 00",
    ]);
}

/// The specification's `\b\d{16}\b`: no check digit, no network, no word before it.
#[test]
fn h2_any_sixteen_digits() {
    becomes(&[
        ("4111111111111112", "[CARD]"),
        ("order 1234567890123456, thanks", "order [CARD], thanks"),
        ("0000000000000000", "[CARD]"),
        ("3.4111111111111111 and 4111111111111111.5", "3.[CARD] and [CARD].5"),
        ("#1700000000123456/2", "#[CARD]/2"),
        ("٤١١١١١١١١١١١١١١١ ４１１１１１１１１１１１１１１１", "[CARD] [CARD]"),
    ]);
    stays(&[
        "123456789012345",
        "12345678901234567",
        "a1234567890123456",
        "1234567890123456_x",
        "é1234567890123456",
    ]);
    let numbers = json!({"card": 4_111_111_111_111_112_u64, "at": 1_700_000_000_123_u64, "n": -3, "x": 0.5});
    let clean = json!({"card": "[CARD]", "at": 1_700_000_000_123_u64, "n": -3, "x": 0.5});
    assert_eq!(sanitize_value(&numbers, Mask::Everything), clean);
    assert_eq!(sanitize_value(&numbers, Mask::SecretsOnly), numbers);
}

/// The specification's `(password|secret|token)\s*[:=]\s*\S+`: any value, also an ordinary word.
#[test]
fn h2_any_assignment_to_a_password_secret_or_token() {
    becomes(&[
        ("secret: correct", "secret: [REDACTED]"),
        ("Password: required", "Password: [REDACTED]"),
        ("TOKEN = null, x", "TOKEN = [REDACTED], x"),
        ("my_token:abc", "my_token:[REDACTED]"),
        ("Enter the password:\n\nhunter2\nbye", "Enter the password:\n\n[REDACTED]\nbye"),
        ("secret \t\n = \n hunter2", "secret \t\n = \n [REDACTED]"),
        ("**Password:** required", "**Password:** [REDACTED]"),
        ("password: hunter2!", "password: [REDACTED]"),
        ("password: ab\"cd<e", "password: [REDACTED]"),
        ("password=\"a\"b c", "password=[REDACTED] c"),
        ("password==hunter2", "password==[REDACTED]"),
        ("token: $TICKET, secret=$X", "token: [REDACTED], secret=[REDACTED]"),
        ("token: Bearer abc", "token: [REDACTED]"),
        ("token: [REDACTED]hunter2", "token: [REDACTED]"),
        ("password is token: hunter2", "password is [REDACTED]: [REDACTED]"),
        ("login(password=password, token=None)", "login(password=[REDACTED], token=[REDACTED])"),
        ("cost per token: 0.002", "cost per token: [REDACTED]"),
        ("fn login(token: Token, password: &str)", "fn login(token: [REDACTED], password: [REDACTED])"),
        ("const token = await getToken(user);", "const token = [REDACTED] getToken(user);"),
    ]);
    let value = json!({"password": 123_456, "token": true, "secret": null});
    let clean = json!({"password": "[REDACTED]", "token": true, "secret": null});
    assert_eq!(sanitize_value(&value, Mask::SecretsOnly), clean);
}

/// Conversations stay readable: numbers, dates, versions and code without such assignments.
#[test]
fn h2_what_is_never_masked() {
    stays(&[
        "2026-11-17T23:14:05.123456Z, 17.11.2026 23:14, 20261117231405",
        "v1.24.3-rc.1+build.20261117, 1.0.0, 10.0.19041.1, sha256:9f86d081884c7d659a2feaa0c55ad015",
        "550e8400-e29b-41d4-a716-446655440000, 12345678-1234-4123-8123-123456789012",
        "order 4500012345678, invoice 2026-000123, ticket ABC-12345, ISBN 978-3-16-148410-0, IMEI 490154203237518",
        "17 digits: 12345678901234567; 15: 123456789012345; snowflake 1187432109876543210",
        "192.168.10.1:8080, ::1, fe80::1ff:fe23:4567:890a, 52.520008, 13.404954, +49 30 1234567",
        "1,234,567,890,123,456 and 1_234_567_890_123_456 and 0x1234567890abcdef",
        "fn parse(input: &str) -> Result<Ast, Error> { let x = input.trim(); Ok(x.into()) }",
        "const total = items.reduce((sum, item) => sum + item.price, 0);",
        "SELECT id, name FROM users WHERE created_at > '2026-01-01' AND total = 12.5;",
        "if password == other { token::Kind } else { Token::new() }",
        "the token limit is 4096; max_tokens: 100; token_count = 7; reset your password in the settings",
        "{\"max_tokens\": 100, \"tokenizer\": \"bpe\", \"secrets\": 2}",
        "def add(a: int, b: int = 0) -> int: return a + b",
    ]);
}

#[test]
fn h2_g19_values_of_secrets() {
    becomes(&[
        ("password=hunter2", "password=[REDACTED]"),
        ("Password: hunter2.", "Password: [REDACTED]."),
        ("my password is hunter2, ok?", "my password is [REDACTED], ok?"),
        ("my password is swordfish and I like it", "my password is [REDACTED] and I like it"),
        ("The password is swordfish.", "The password is [REDACTED]."),
        ("**Password:** hunter2", "**Password:** [REDACTED]"),
        ("passwd = 'p w d'", "passwd = '[REDACTED]'"),
        ("DB_PASSWORD=\"a\\\"b\" x", "DB_PASSWORD=\"[REDACTED]\" x"),
        ("client secret: Zx81", "client secret: [REDACTED]"),
        ("client_secret => 'Zx81'", "client_secret => '[REDACTED]'"),
        ("API key: abc123", "API key: [REDACTED]"),
        ("api-key is abc123", "api-key is [REDACTED]"),
        ("the access key = abc", "the access key = [REDACTED]"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[REDACTED]"),
        ("config[\"token\"] = \"abc\"", "config[\"token\"] = \"[REDACTED]\""),
        ("{\"token\":\"abc\",\"n\":1}", "{\"token\":\"[REDACTED]\",\"n\":1}"),
        ("{\"token\":\"a\\\\\",\"user\":\"x\"}", "{\"token\":\"[REDACTED]\",\"user\":\"x\"}"),
        ("\"{\\\"token\\\":\\\"abc\\\",\\\"n\\\":1}\"", "\"{\\\"token\\\":\\\"[REDACTED]\\\",\\\"n\\\":1}\""),
        ("{password: x1, user: y}", "{password: [REDACTED], user: y}"),
        ("Server=a;Password=b1;Database=c", "Server=a;Password=[REDACTED];Database=c"),
        ("https://x.example/?token=abc&page=2", "https://x.example/?token=[REDACTED]&page=2"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [REDACTED]"),
        ("authorization: Basic dXNlcjpw", "authorization: Basic [REDACTED]"),
        ("\"Authorization\": \"Bearer abc\"", "\"Authorization\": \"Bearer [REDACTED]\""),
        ("curl -H 'X-Api-Key: abc123' u", "curl -H 'X-Api-Key: [REDACTED]' u"),
        ("send Bearer abcdef0123456789xyz now", "send Bearer [REDACTED] now"),
        ("login --password hunter2 --user x", "login --password [REDACTED] --user x"),
        ("<password>hunter2</password>", "<password>[REDACTED]</password>"),
        ("token: |\n  line1\n  line2\nnext: 1", "token: |\n  [REDACTED]\nnext: 1"),
        ("password=\"open end", "password=\"[REDACTED]"),
        ("password = b\"abc\"", "password = b\"[REDACTED]\""),
        ("password = \"\"\"abc\"\"\"", "password = \"\"\"[REDACTED]\"\"\""),
        ("password=a@b.com", "password=[REDACTED]"),
        ("password=4111 1111 1111 1111", "password=[REDACTED]"),
        ("password=supersecret", "password=[REDACTED]"),
        ("passphrase: my dog likes cheese.\nnext", "passphrase: [REDACTED].\nnext"),
        ("password1: this-is-1", "password1: [REDACTED]"),
        ("Passwort: geheim123, Kennwort = sonne", "Passwort: [REDACTED], Kennwort = [REDACTED]"),
        ("user jane, pw: hunter2", "user jane, pw: [REDACTED]"),
    ]);
}

#[test]
fn h2_keys_by_their_shape() {
    let secrets = [
        "sk-abcdefghijklmnopqrstuvwx",
        "sk-proj-Ab12Cd34Ef56Gh78_x-y",
        "sk-ant-api03-0123456789abcdef",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "baton_qG3vK8-_0123456789abcdefghijABCDEFGHIJ01234",
        "gho_0123456789abcdefghijABCDEFGHIJ012345",
        "github_pat_11ABCDEFG0123456789_abcdef",
        "xoxb-1234567890-abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA0123456789abcdefghijklmnopqrstuv",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    ];
    for secret in secrets {
        for (before, after) in [("", ""), ("see ", " there"), ("(", ")."), ("x=\"", "\""), ("日", "本")] {
            let text = format!("{before}{secret}{after}");
            let expected = format!("{before}[REDACTED]{after}");
            assert_eq!(sanitize(&text, Mask::SecretsOnly), expected);
            becomes(&[(&text, &expected)]);
        }
    }
    becomes(&[
        ("postgres://user:password@host.com/db", "postgres://user:[REDACTED]@host.com/db"),
        ("redis://:p@ss@host:6379", "redis://:[REDACTED]@host:6379"),
        (
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nBAQE\n\nThat was it.",
            "[REDACTED]\n\nThat was it.",
        ),
        ("-----BEGIN PRIVATE KEY----- is how it begins", "[REDACTED] is how it begins"),
    ]);
}

/// Text that only sounds like a secret stays readable, also for another agent that works on code.
#[test]
fn h2_ordinary_words_stay() {
    stays(&[
        "the token limit is 4096",
        "max_tokens: 100, tokens: 5, token_count = 7",
        "password reset, passwd: string, api_key: required",
        "The password is wrong. The token is expired. The secret is patience.",
        "The token is a string that you get from us",
        "Passcode: the one that you chose at first",
        "the token is 4096 bytes long",
        "password: {{ password }}, api_key=<key>",
        "\"token\": {\"type\": \"x\"}, \"secret\": null, \"password\": \"\"",
        "`token` is `string`",
        "Password: ********",
        "passphrase: required",
        "PWD=/home/jane pass: 12 fail: 3",
        "sk-learn-based-estimator, task-0123456789abcdef0123",
        "postgres://user@host/db http://host:8420/x@y postgres://u:${PASSWORD}@h/d",
        "eyJust.a.word",
        "-----BEGIN CERTIFICATE-----",
        "It has bearer authentication.",
        "Authorization: Basic auth is used",
        "Authorization: J. Smith, CFO",
        "Authorization: Smith",
        "https://medium.com/@jane/title, @scope/x@1.2.3, uses: actions/checkout@v4, x@sha256:abc",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "| `token` | string | The token |\n| password | text | min 8 |",
        "\"password\": \"Password\", \"token\": \"Token\"",
        "",
    ]);
}

/// Code stays code for its reviewers, unless it assigns to a name that ends with `password`, `secret` or `token`.
#[test]
fn h2_code_stays() {
    stays(&[
        "passwd = user.password; api_key = response.data.token; let t = Auth { apikey: &self.token };",
        "Token next = lexer->next(); list.push(tokens[pos]);",
        "WHERE passwd = :passwd AND passcode = @passcode AND api_key = %s AND credential = ?",
        "def f(api_key: str = None, *, passwd: Optional[str] = None) -> Token:",
        "let credential = match self { A => b };",
        "passwd: !ENV DB_PASSWORD",
        "fetch(url, {credentials: 'include'})",
        "passwd: z.string().min(8), api_key: process.env.SECRET",
    ]);
}

/// X32
#[test]
fn x32_work_that_needs_addresses_gets_them_and_never_secrets() {
    let text = "jane@example.com paid with 4111 1111 1111 1111, password=hunter2";
    let clean = sanitize(text, Mask::SecretsOnly);
    assert_eq!(clean, "jane@example.com paid with 4111 1111 1111 1111, password=[REDACTED]");
}

#[test]
fn h2_json_is_masked_by_its_keys_too() {
    let value = json!({
        "password": "x", "apiKey": "y", "Authorization": "Bearer z", "token": ["a", "b"], "secret": "$NAME",
        "max_tokens": 5, "note": "jane@example.com", "deep": [{"client_secret": "s", "n": 1.5, "ok": true}],
        "a@b.com": 1, "c@d.com": 2, "empty": {"password": ""},
    });
    let clean = json!({
        "password": "[REDACTED]", "apiKey": "[REDACTED]", "Authorization": "[REDACTED]",
        "token": ["[REDACTED]", "[REDACTED]"], "secret": "$NAME", "max_tokens": 5, "note": "[EMAIL]",
        "deep": [{"client_secret": "[REDACTED]", "n": 1.5, "ok": true}],
        "[EMAIL]": 1, "[EMAIL] 9": 2, "empty": {"password": ""},
    });
    assert_eq!(sanitize_value(&value, Mask::Everything), clean);
    assert_eq!(sanitize_value(&clean, Mask::Everything), clean);
    assert_eq!(sanitize_value(&json!("a@b.com"), Mask::SecretsOnly), json!("a@b.com"));
}

/// Each of these, repeated, would take minutes, not milliseconds, if anything were looked at again and again.
const HOSTILE_PIECES: &[&str] = &[
    "a",
    "a@",
    "a@a.",
    "%40",
    "1",
    "1 ",
    "4111 ",
    "1-",
    "token=",
    "token:",
    "token: |\n ",
    "token=\"",
    "token=\\\"",
    "token='x token=\"",
    "token=a(",
    "token=$A",
    "token is ",
    "--token ",
    "<token>",
    "my password is x ",
    "sk-",
    "sk-a",
    "_sk-aaaaaaaaaaaaaaaaaaaa",
    "eyJaaaaaaaaaa.",
    "://",
    "://a:",
    "a:b@",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY----- x ",
    "-",
    "_",
    " ",
    "\n",
    "\\",
    "\"",
    "é",
    "Bearer ",
    "token=a,b&c;",
    "token=\\\\\\\"",
    "key ",
    "passphrase=a",
    "passphrase=a(<",
    "passphrase=a(,",
    "passphrase=$A ",
    "passphrase= a b",
    "token \n",
    "token \n= \n",
    "token=[REDACTED]",
    "token=\"[REDACTED]\"",
    "token==",
    "token=Bearer ",
    "token=**",
    "token=<",
    "token=a<a",
    "token='a'a",
    "a%40a",
    "%40@",
    "1234567890123456",
    "٤",
];

#[test]
fn x32_hostile_texts_of_any_length_end() {
    const LONG: usize = 64 * 1024;
    for piece in HOSTILE_PIECES {
        let text = piece.repeat(LONG / piece.len());
        let clean = sanitize(&text, Mask::Everything);
        assert!(clean.len() <= text.len() * 3, "{piece}");
    }
}

fn luhn_card() -> impl Strategy<Value = String> {
    let digits = proptest::collection::vec(0..10_u32, 11..18);
    (3..=6_u32, digits, 0..3_usize).prop_map(|(first, mut digits, grouping)| {
        // Thirteen digits may be a trade item; of fifteen only one network's are cards.
        if digits.len() == 11 {
            digits.push(0);
        }
        digits.insert(0, if digits.len() < 14 { 3 } else { first });
        if digits.len() == 14 {
            digits[1] = 7;
        }
        let weigh =
            |(nth, digit): (usize, &u32)| if nth % 2 == 0 { digit / 5 + digit * 2 % 10 } else { *digit };
        let sum: u32 = digits.iter().rev().enumerate().map(weigh).sum();
        digits.push((10 - sum % 10) % 10);
        let joint = if digits.len() == 16 { ["", " ", "-"][grouping] } else { "" };
        let text: Vec<String> =
            digits.chunks(4).map(|four| four.iter().map(u32::to_string).collect()).collect();
        text.join(joint)
    })
}

fn secret() -> impl Strategy<Value = (String, String)> {
    let random = "[A-Za-z][a-z0-9]{8}[0-9][A-Za-z0-9]{14}";
    let frames = [
        ("password=", ""),
        ("token: ", ""),
        ("\"api_key\": \"", "\""),
        ("my secret is ", ""),
        ("--token ", " "),
        ("Authorization: Bearer ", ""),
        ("sk-", ""),
        ("ghp_", ""),
        ("postgres://u:", "@h/d"),
        ("xoxb-", ""),
        ("secret='", "'"),
        ("-----BEGIN PRIVATE KEY-----\n", "\n-----END PRIVATE KEY-----"),
    ];
    (random, proptest::sample::select(frames.to_vec()))
        .prop_map(|(random, (before, after))| (format!("{before}{random}{after}"), random))
}

/// The three expressions of the specification, and what Baton does not take for an address, a secret or its end.
static SPECIFICATION: LazyLock<Specification> = LazyLock::new(Specification::new);

struct Specification {
    email: Regex,
    card: Regex,
    assignment: Regex,
    /// Where a value ends although no space follows: a closing quote, the next pair, a tag.
    end: Regex,
}

impl Specification {
    fn new() -> Self {
        let new = |text: &str| Regex::new(text).unwrap();
        Self {
            email: new(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b"),
            card: new(r"\b\d{16}\b"),
            assignment: new(r"(?i-u)(?:password|secret|token)(?u)\s*[:=]\s*(\S+)"),
            end: new(r#"["'`](?:[^A-Za-z0-9]|$)|[&;,][A-Za-z0-9_."' -]{1,32}[=:]|</|<[A-Za-z0-9]+>"#),
        }
    }

    /// The ranges that have to be masked.
    fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let is_address = |found: &str, rest: &str| {
            let is_remote = found.starts_with("git@") && rest.starts_with([':', '/']);
            !is_remote && !found.contains("@1x") && !found.contains("@2x")
        };
        let emails = self.email.find_iter(text).filter(|m| is_address(m.as_str(), &text[m.end()..]));
        let mut all: Vec<Range<usize>> = emails.map(|m| m.range()).collect();
        all.extend(self.card.find_iter(text).map(|m| m.range()));
        for captures in self.assignment.captures_iter(text) {
            let value = captures.get(1).unwrap();
            let is_path = value.as_str().starts_with(':');
            // The next pair may have spaces in its name.
            let end =
                self.end.find(&text[value.start()..]).map_or(value.len(), |end| end.start().min(value.len()));
            all.extend((!is_path).then(|| value.start()..value.start() + end));
        }
        all
    }
}

/// Words, signs and spaces of which the finders make something, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = vec![
        "password",
        "Secret",
        "TOKEN",
        "my_",
        "key",
        " is ",
        "=",
        ": ",
        ":",
        " ",
        "  ",
        "\n",
        "\t",
        "\"",
        "'",
        "`",
        ",",
        ";",
        "&",
        "<b>",
        ".",
        "-",
        "_",
        "*",
        "(",
        ")",
        "{",
        "[",
        "/",
        "!",
        "$",
        "%",
        "%40",
        "@",
        "a",
        "b1",
        "x",
        "com",
        "git",
        "2x",
        "png",
        "1234567890123456",
        "4111",
        "111111111111",
        "1",
        "é",
        "中",
        "Bearer ",
        "|",
        "[REDACTED]",
        "[CARD]",
        "==",
        "=>",
        "\\",
        "sk-",
        "https://",
    ];
    proptest::collection::vec(proptest::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// I1: whatever the specification's expressions match is masked: all its letters and digits.
    #[test]
    fn h2_covers_the_specification(text in pieces()) {
        let found = super::found(&text, Mask::Everything);
        let is_found = |at: usize| found.iter().any(|found| found.at.contains(&at));
        for range in SPECIFICATION.ranges(&text) {
            let inside = text[range.clone()].replace("[REDACTED]", "..........").replace("[CARD]", "......");
            let left = inside.char_indices().find(|(at, c)| c.is_alphanumeric() && !is_found(range.start + at));
            prop_assert!(left.is_none(), "{:?} in {:?} is not masked", &text[range.clone()], text);
        }
    }
}

proptest! {
    #[test]
    fn h2_nothing_planted_survives(
        before in "\\PC{0,40}", after in "\\PC{0,40}",
        (secret, random) in secret(), card in luhn_card(), mail in "[a-z]{1,8}\\.[a-z0-9]{1,8}@[a-z]{2,9}\\.(com|org|co\\.uk)",
    ) {
        let text = format!("{before}\n{secret}\n{mail} {card}\n{after}");
        let clean = sanitize(&text, Mask::Everything);
        prop_assert!(!clean.contains(&random), "{clean}");
        prop_assert!(!clean.contains(&mail), "{clean}");
        prop_assert!(!clean.contains(&card), "{clean}");
        prop_assert!(!sanitize(&text, Mask::SecretsOnly).contains(&random));
    }

    #[test]
    fn h2_again_changes_nothing(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "password", "token", "my ", "secret", " is ", "=", ": ", ":", "\"", "'", "\\", "`", " ", "\n", "@", "%40", ".", "com",
            "jane", "4111", "111111111111", "4111111111111111", "-", "1", "sk-", "ghp_", "0123456789abcdefghij01234", "://",
            "/", "Bearer ", "eyJhbGciOiJI", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "|", "  ", "<", ">",
            "[REDACTED]", "[EMAIL]", "[CARD]", "(", ")", "[", "]", "{", "}", ",", ";", "&", "$", "*", "é", "中", "word", "AKIA",
            "--", "+", "_", "5", "0005", "api key",
        ]), 0..24),
        noise in "\\PC{0,12}",
    ) {
        let text = pieces.concat() + &noise;
        for mask in [Mask::Everything, Mask::SecretsOnly] {
            let once = sanitize(&text, mask).into_owned();
            prop_assert_eq!(sanitize(&once, mask).into_owned(), once, "{}", text);
        }
    }
}
