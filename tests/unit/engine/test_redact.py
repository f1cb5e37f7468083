"""Secrets never leave (L25): planted ones are gone, ordinary text stays, and no input makes it slow."""

from __future__ import annotations

import base64
import json
import random
import re
import time
import uuid
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from becket.kernel.engine.redact import _NAMES, _RULES, Redactor, _AfterName, _by_rules, secret_variables

KNOWN = {"DEPLOY_TOKEN": "Kq7-tv_zzP0/wN+22", "DB_PASSWORD": "correct horse battery!"}
REDACTOR = Redactor(KNOWN)

quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

base62 = st.text("ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz0123456789", min_size=40, max_size=60)
surroundings = st.text(st.characters(codec="utf-8"), max_size=60)
separators = st.sampled_from([" ", "\n", "(", ": ", ", ", "'"])

shapes = st.sampled_from(
    [
        "ghp_{}", "gho_{}", "ghs_{}", "github_pat_{}", "glpat-{}", "xoxb-{}", "sk-{}", "sk-proj-{}", "sk_live_{}",
        "npm_{}", "hf_{}", "whsec_{}", "ya29.{}", "bk_{}", "Bearer {}", "bearer   {}", "Authorization: token {}",
        "https://user:{}@example.org/x", "postgres://app:{}@db:5432/app", "https://{}@example.org/",
        "password={}", "passwd={}", "PGPASSWORD={}", "DB_PASSWORD={}", "db_password: {}", '"password": "{}"',
        "'secret' => '{}'", "api_key = \"{}\"", "?token={}&a=1", "&api_key={}", "access_token={}", "--token {}",
        "AWS_SECRET_ACCESS_KEY={}", "aws_secret_access_key = {}", r'{{\"client_secret\": \"{}\"}}',
        "https://open.feishu.cn/open-apis/bot/v2/hook/{}", "https://hooks.slack.com/services/T0/B0/{}",
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={}", "https://discord.com/api/webhooks/123456/{}",
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\\n{}\\n-----END OPENSSH PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{}.sig",
    ]
)  # fmt: skip


@quick
@given(before=surroundings, gap=separators, shape=shapes, secret=base62, after=surroundings)
def test_a_planted_secret_never_survives(before: str, gap: str, shape: str, secret: str, after: str) -> None:
    """L25: whatever stands around it, the secret's own characters are gone, and a second pass changes nothing."""
    secret = "a1" + secret
    redacted = REDACTOR.text(before + gap + shape.format(secret) + " " + after)
    assert secret not in redacted
    assert "[redacted:" in redacted
    assert REDACTOR.text(redacted) == redacted


@quick
@given(before=surroundings, after=surroundings, name=st.sampled_from(sorted(KNOWN)))
def test_a_known_value_never_survives_in_any_usual_encoding(before: str, after: str, name: str) -> None:
    """L25: known values are found without any boundary around them, also url-, base64-, hex- and JSON-encoded."""
    value = KNOWN[name]
    forms = [value, quote(value, safe=""), base64.b64encode(value.encode()).decode(), value.encode().hex()]
    for form in [*forms, json.dumps({"x": value})]:
        redacted = REDACTOR.text(before + form + after)
        assert form not in redacted
        assert f"[redacted:{name}]" in redacted


AWS = "AKIA" + "Q7LM2N8PX4RT6VWZ"
AWS_SECRET = "wJa1rXUtn/FEMI+K7MDENGbPxRf" + "iCYzEXAMPLEKE"


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("sendgrid", "SG." + "a1B2c3D4e5F6g7H8i9J0kL." + "Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3i2H1g0FeD"),
        ("digitalocean", "dop_v1_" + "0123456789abcdef" * 4),
        ("becket", "bkt_" + "aB3_-" * 8 + "xY9"),
        ("age", "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE"),
        ("telegram", "123456789:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw9"[:35]),
    ],
)  # fmt: skip
def test_a_token_is_known_by_its_shape_alone(kind: str, shape: str) -> None:
    for text in (shape, f"https://api.example.org/bot{shape}/x", f"({shape})", f"using {shape}, then"):
        if kind == "sendgrid" and "/bot" in text:
            continue
        redacted = REDACTOR.text(text)
        assert shape[-20:] not in redacted
        assert f"[redacted:{kind}]" in redacted


@pytest.mark.parametrize(
    "text", [f"{AWS}\n{AWS_SECRET}\n", f"{AWS_SECRET},{AWS}", f"id {AWS} and {AWS_SECRET} go together"]
)
def test_an_aws_secret_is_known_beside_its_id(text: str) -> None:
    redacted = REDACTOR.text(text)
    assert AWS_SECRET not in redacted
    assert AWS not in redacted


def test_two_aws_secrets_in_a_table_are_both_gone() -> None:
    other = AWS_SECRET[::-1]
    redacted = REDACTOR.text(f"{AWS} {AWS[:-1]}2\n{AWS_SECRET} {other}\n")
    assert AWS_SECRET not in redacted
    assert other not in redacted


@pytest.mark.parametrize(
    "text",
    [
        "3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
        "A" * 40,
        "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MEFCQ0RFRkdISUo=",
        AWS_SECRET + "more/1",
    ],
)
def test_a_digest_beside_an_aws_id_stays(text: str) -> None:
    assert text in REDACTOR.text(f"{AWS} {text}")
    assert REDACTOR.text(f"far from any id: {AWS_SECRET}").endswith(AWS_SECRET)


LETTERS, HEX = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ" * 6, "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 6
VENDORS = {
    "artifactory": "AKCp" + LETTERS[:69], "atlassian": "ATATT3x" + LETTERS[:180] + "=1A2B3C4D",
    "azure": "aB1" + "8Q~" + LETTERS[:32] + "_-", "cargo": "cio" + LETTERS[:32],
    "cloudflare": "v1.0-" + HEX[:24] + "-" + HEX[:146], "databricks": "dapi" + HEX[:32],
    "discord": "MTE2NDk4NzIxMzQ1Njc4OTAx" + ".GaB1cD." + LETTERS[:38], "docker": "dckr_pat_" + LETTERS[:27],
    "doppler": "dp.pt." + LETTERS[:43], "dynatrace": "dt0c01." + HEX[:24].upper() + "." + HEX[:64].upper(),
    "figma": "figd_" + LETTERS[:40], "fly": "fm2_" + LETTERS[:200] + "==",
    "grafana": "glsa_" + LETTERS[:32] + "_" + HEX[:8], "groq": "gsk_" + LETTERS[:52],
    "heroku": "HRKU-" + "8d3f1c2a-77be-4a1e-9c3d-0123456789ab", "linear": "lin_api_" + LETTERS[:40],
    "mailchimp": HEX[:32] + "-us12", "mailgun": "key-" + HEX[:32], "newrelic": "NRAK-" + LETTERS[:27].upper(),
    "notion": "secret_" + LETTERS[:43], "perplexity": "pplx-" + LETTERS[:48],
    "planetscale": "pscale_tkn_" + LETTERS[:43], "postman": "PMAK-" + HEX[:24] + "-" + HEX[:34],
    "pulumi": "pul-" + HEX[:40], "replicate": "r8_" + LETTERS[:37], "rubygems": "rubygems_" + HEX[:48],
    "sentry": "sntrys_" + "eyJpYXQiOjE3" + LETTERS[:120], "shopify": "shpat_" + HEX[:32],
    "square": "EAAAl" + LETTERS[:59], "supabase": "sbp_" + HEX[:40],
    "terraform": LETTERS[:14] + ".atlasv1." + LETTERS[:67], "twilio": "SK" + HEX[:32],
    "vault": "hvs." + LETTERS[:95], "xai": "xai-" + LETTERS[:80],
}  # fmt: skip
SPELLINGS = [("notion", "ntn_" + "12345678901" + LETTERS[:35]), ("sentry", "sntryu_" + HEX[:64])]


@pytest.mark.parametrize(("kind", "token"), [*VENDORS.items(), *SPELLINGS])
def test_a_token_of_a_vendor_is_known_by_its_shape_alone(kind: str, token: str) -> None:
    for text in (token, f"({token})", f"using {token}, then", f'"{token}"', f"said: {token}.", f"a\n{token}\nb"):
        redacted = REDACTOR.text(text)
        assert f"[redacted:{kind}]" in redacted, text
        assert token[-20:] not in redacted


EXACT = ["cargo", "databricks", "mailgun", "mailchimp", "replicate", "square", "twilio", "pulumi"]


@pytest.mark.parametrize("kind", EXACT)
def test_what_is_longer_or_shorter_than_the_vendors_token_stays(kind: str) -> None:
    """Short beginnings are ordinary words: only the exact length tells."""
    token = VENDORS[kind]
    for text in (token[:-3], f"{token}f", f"a{token}", f"{token}/f"):
        assert REDACTOR.text(text) == text


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("machine a.org login me password hunter", "machine a.org login me password [redacted:netrc]"),
        ("machine a.org\n  login me\n  password hunter\n", "machine a.org\n  login me\n  password [redacted:netrc]\n"),
        ("login me password hunter2", "login me password [redacted:netrc]"),
        ("password hunter2!\n", "password [redacted:netrc]\n"),
    ],
)
def test_a_password_of_a_netrc_is_hidden(text: str, redacted: str) -> None:
    assert REDACTOR.text(text) == redacted


def test_digests_ids_and_lock_files_in_plenty_stay_as_they_are() -> None:
    chance = random.Random(4)
    for _ in range(3_000):
        raw = chance.randbytes(64)
        sha, coded = raw.hex(), base64.b64encode(raw).decode()
        lines = [
            sha[:40], sha[:64], sha, sha[:32], str(uuid.UUID(bytes=raw[:16])), f"sha256:{sha[:64]}", coded[:64],
            f'"integrity": "sha512-{coded}",', f"example.org/x v1.0.0 h1:{coded[:43]}=", f"--hash=sha256:{sha[:64]}",
            f"key-{sha[:40]}", f"cache-key-{sha[:32]}", f"https://example.org/{sha[:32]}-user", f"SK-{sha[:32]}",
            f"v1.0-{sha[:24]}", f"r8_{sha[:8]}", f"app.Module{sha[:18]}.{sha[:6]}.{sha[:30]}", f"hvs.{sha[:12]}",
            "NotificationsControllerFacto.create.aFunctionWithAVeryLongName1",
        ]  # fmt: skip
        text = "\n".join(lines)
        assert REDACTOR.text(text) == text


NEW_KINDS = ("sendgrid", "digitalocean", "age", "telegram", "aws", "netrc", "private-key", *VENDORS)


def test_our_own_sources_and_lock_files_hold_none_of_these() -> None:
    """Ordinary text in plenty: hashes, base64, digits with colons."""
    root = Path(__file__).parents[3]
    files = [
        *root.glob("src/**/*.py"),
        *root.glob("requirements/*"),
        *root.glob("docs/**/*.md"),
        *root.glob("bench/**/*.py"),
    ]
    read = [path for path in files if path.is_file() and path.name != "redact.py"]
    assert len(read) > 300
    for path in read:
        redacted = Redactor({}).text(path.read_text(encoding="utf-8"))
        assert not [kind for kind in NEW_KINDS if f"[redacted:{kind}]" in redacted], path


pieces = st.sampled_from(
    [
        "token", "password", "=", ":", " ", '"', "'", "\\", "[redacted:x]", "]", "a1b2c3d4", "\n", "Bearer ", "://",
        "@", "--", "Authorization: ", "basic ", "?key=", "&", "ghp_" + "a1" * 16, "eyJ", ".", "secret",
        KNOWN["DEPLOY_TOKEN"],
    ]
)  # fmt: skip


@settings(quick, max_examples=400)
@given(pieces=st.lists(pieces, max_size=30))
def test_redaction_is_idempotent(pieces: list[str]) -> None:
    once = REDACTOR.text("".join(pieces))
    assert REDACTOR.text(once) == once


def _slowly(text: str) -> str:
    """Every rule as one pattern, tried at every letter of the text."""
    for rule in _RULES:
        pattern, hidden = re.compile(rule.pattern), f"[redacted:{rule.kind}]"
        if isinstance(rule, _AfterName):
            head = rule.head.removesuffix(r"\Z") if rule.head else ""
            pattern = re.compile(rf"{head}(?i:{_NAMES}){rule.pattern}")

        def hide(match: re.Match[str], rule: object = rule, hidden: str = hidden) -> str:
            if (judge := getattr(rule, "judge", None)) is not None and not judge(match):
                return match[0]
            start, end = (at - match.start() for at in match.span(match.lastgroup or 0))
            return match[0][:start] + hidden + match[0][end:]

        text = pattern.sub(hide, text)
    return text


assignments = st.sampled_from(
    [
        "token", "TOKEN", "Pwd", "secret", "secret-access-key", "client_secret", "apikey", "credentials", "passphrase",
        "=", "==", "=>", ":=", ":", ": ", " ", "\t", '"', "'", "\\", '\\"', "[redacted:x]", "a1b2c3d4", "abc", "true",
        "xxx", "12", "\n", "\r\n", "\n  ", "\n- ", "--", "-", "_", ".", "...", "$", "${", "$FOO", "{{ a }}", "<a>",
        "%(", "**", "os.", "f(", "a[", " # c", ",", ")", "}", ";", "&", "`", "/", "~", "x" * 16, "x" * 70, "eyJ",
        "?key=", "sk-", "Authorization: ", "basic ", "://", "@", "to\u212aen", "\u017fecret", "api\u0131", "\u0130",
        "\u2028", "\xa0",
    ]
)  # fmt: skip


@settings(quick, max_examples=400)
@given(pieces=st.lists(assignments, max_size=40))
def test_looking_only_where_a_name_stands_finds_the_same_as_looking_everywhere(pieces: list[str]) -> None:
    """L25: speed costs no secret."""
    text = "".join(pieces)
    assert _by_rules(text) == _slowly(text)


words = st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12), min_size=1, max_size=20)


@quick
@given(sha=st.text("0123456789abcdef", min_size=40, max_size=64), id_=st.uuids(), prose=words, path=words)
def test_ordinary_text_is_untouched(sha: str, id_: uuid.UUID, prose: list[str], path: list[str]) -> None:
    """A SHA that must be exact is exact: hex, uuids, paths and prose never look like a secret."""
    text = f"{' '.join(prose)} at {sha}, run {id_}: see /{'/'.join(path)}.py:12 and https://example.org/{sha}."
    assert REDACTOR.text(text) == text
    payload = {"ref": "refs/heads/main", "old": sha[:40], "new": sha[-40:], "paths": path, "count": 3}
    assert REDACTOR.value(payload) == payload
    assert REDACTOR.leaks(payload) == []


@pytest.mark.parametrize(
    "text",
    [
        "basic authentication is required", "the password: must be at least 8 characters long", "token: expired",
        "tokens=2000000", "max_tokens: 4096", "def login(password=None, token=''):", "password: str | None = None",
        "token = parser.next()", "password=os.environ['DB_PASSWORD']", "token=self.token", "password=$PASSWORD",
        "curl -H \"Authorization: Bearer $TOKEN\"", "password=${DB_PASSWORD}", "api_key: {fix.key}", "secret=<secret>",
        "password=********", "PWD=/home/someone/project", "git@github.com:owner/repo.git", "http://host:8080/a@b",
        "the login page password reset", "password reset", "login with password authentication", "machine learning",
        "task-force-of-the-whole-department", "the key=value form", "bearer of good news", "a token ring",
    ],
)  # fmt: skip
def test_what_only_talks_about_secrets_stays_readable(text: str) -> None:
    assert REDACTOR.text(text) == text


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("password=hunter2", "password=[redacted:secret]"),
        ("a: 1\ndb_password: hunter\nb: 2", "a: 1\ndb_password: [redacted:secret]\nb: 2"),
        ("Basic dXNlcjpwYXNz", "Basic [redacted:basic]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted:aws]"),
        ("AIza" + "a1" * 17 + "b", "[redacted:google]"),
        ('{"password": "with \\" quote"}', '{"password": "[redacted:secret]"}'),
        ("https://u:p@ss@host/x", "https://u:[redacted:url-password]@host/x"),
        ("Pwd=abc;Uid=x", "Pwd=[redacted:secret];Uid=x"),
        ("f(password=abc, x=1)", "f(password=[redacted:secret], x=1)"),
        ("-----BEGIN RSA PRIVATE KEY-----\ncut off", "[redacted:private-key]"),
    ],
)
def test_only_the_secret_is_replaced(text: str, redacted: str) -> None:
    assert REDACTOR.text(text) == redacted


PEM = [base64.b64encode(bytes((each * 7 + at * 31) % 256 for at in range(48))).decode() for each in range(12)] + [
    "aB3="
]
PEM_END = "-----END EC " + "PRIVATE KEY-----"


@pytest.mark.parametrize("join", ["\n", " ", "\r\n", "\\n", "\n  | ", "\nE       ", "\n> "])
def test_a_key_that_lost_its_first_line_is_hidden_however_much_of_it_is_left(join: str) -> None:
    """L25: whoever cut a text did not ask where a key begins."""
    whole = join.join([*PEM, PEM_END])
    for start in range(whole.index(PEM_END) - len(join)):
        assert REDACTOR.text(f"{whole[start:]} and so on") == "[redacted:private-key] and so on"
    for words in ("it printed:\n", "a b c: ", "x.py:12 "):
        assert REDACTOR.text(words + whole).startswith(words.rstrip()[:-1])
        assert PEM[0][-20:] not in REDACTOR.text(words + whole)


@pytest.mark.parametrize(
    "text",
    [
        f"the last line of a key is {PEM_END}, as everybody knows",
        "\n".join(["-----BEGIN CERTIFICATE-----", *PEM, "-----END CERTIFICATE-----"]),
        "\n".join(["-----BEGIN PUBLIC KEY-----", *PEM, "-----END PUBLIC KEY-----"]),
    ],
)
def test_what_only_resembles_the_end_of_a_key_stays(text: str) -> None:
    assert REDACTOR.text(text) == text


def test_a_field_of_a_secret_name_is_hidden_whatever_it_holds() -> None:
    value = {
        "auth": {"password": "x", "Authorization": "abc", "pins": [1]},
        "apiKey": 12345,
        "token_count": 5,
        "ok": True,
    }
    assert REDACTOR.value(value) == {
        "auth": {"password": "[redacted:secret]", "Authorization": "[redacted:secret]", "pins": [1]},
        "apiKey": "[redacted:secret]",
        "token_count": 5,
        "ok": True,
    }
    assert REDACTOR.value(REDACTOR.value(value)) == REDACTOR.value(value)
    assert REDACTOR.value({"password": "$DB_PASSWORD", "secret": None}) == {"password": "$DB_PASSWORD", "secret": None}


def _split(value: str) -> dict[str, str]:
    return {"one": value[:9], "two": value[9:]}


@pytest.mark.parametrize(
    "payload",
    [
        _split(KNOWN["DEPLOY_TOKEN"]),
        " ".join(KNOWN["DEPLOY_TOKEN"]),
        "\u200a".join(KNOWN["DEPLOY_TOKEN"]),
        KNOWN["DEPLOY_TOKEN"][::-1],
        [base64.b64encode(b"x" * lead + KNOWN["DEPLOY_TOKEN"].encode() + b" and more").decode() for lead in (1,)],
        [base64.b64encode(b"x" * lead + KNOWN["DEPLOY_TOKEN"].encode() + b" and more").decode() for lead in (2,)],
        [base64.urlsafe_b64encode(b"x" * 3 + KNOWN["DEPLOY_TOKEN"].encode() + b"~and more").decode()],
        {"deep": [{"hex": b"x".hex() + KNOWN["DEPLOY_TOKEN"].encode().hex().upper()}]},
        quote(quote(KNOWN["DEPLOY_TOKEN"], safe=""), safe=""),
        "".join(f"&#{ord(letter)};" for letter in KNOWN["DEPLOY_TOKEN"]),
    ],
)
def test_what_redaction_cannot_replace_is_a_leak_with_a_name(payload: object) -> None:
    """L25: a split or re-encoded secret is found after redaction; only the variable's name is told."""
    assert REDACTOR.leaks(REDACTOR.value(payload)) == ["DEPLOY_TOKEN"]


def test_a_redacted_payload_does_not_leak() -> None:
    payload = REDACTOR.value({"text": f"it was {KNOWN['DEPLOY_TOKEN']}", KNOWN["DB_PASSWORD"]: 1})
    assert payload == {"text": "it was [redacted:DEPLOY_TOKEN]", "[redacted:DB_PASSWORD]": 1}
    assert REDACTOR.leaks(payload) == []


def test_a_plain_word_is_not_hunted_for_but_still_hidden_where_it_is_assigned() -> None:
    """`postgres` as a password must not blacken every text about Postgres; the redactor says what it left out."""
    redactor = Redactor({"PGPASSWORD": "postgres", "PIN": "1234"})
    assert redactor.too_plain == ("PGPASSWORD", "PIN")
    assert redactor.text("postgres is up") == "postgres is up"
    assert redactor.text("PGPASSWORD=postgres") == "PGPASSWORD=[redacted:secret]"


UNSEEN = ["\u200b", "\u2060", "\xad", "\x00", "\u202e", "\ufeff", "\ufe0f", "\x1b[1m", "\x1b]8;;x\x07", "\U000e0041"]


@pytest.mark.parametrize("unseen", UNSEEN)
@pytest.mark.parametrize("secret", [*KNOWN.values(), VENDORS["xai"]])
def test_a_secret_that_is_split_by_what_nobody_sees_is_hidden(secret: str, unseen: str) -> None:
    """A report or a terminal drops what splits it, and would show it whole."""
    split = unseen.join((secret[:5], secret[5:9], secret[9:]))
    for text in (split, f"+ x = {split}\n other\u200b line", f"a\n{unseen}{split}{unseen}\n"):
        redacted = REDACTOR.text(text)
        assert secret not in redacted.replace(unseen, "")
        assert "[redacted:" in redacted
        assert ("other\u200b line" in redacted) is ("other" in text), "other lines stay as they are"
        assert REDACTOR.leaks(redacted) == []


def test_what_only_paints_a_text_stays() -> None:
    text = "\x1b[32mok\x1b[0m 3 tests\r\n\u200bnothing\x00 here\n"
    assert REDACTOR.text(text) == text


def test_each_line_of_a_longer_secret_is_hidden() -> None:
    redactor = Redactor(
        {"LOGIN": '{\n  "id": "Zq7-first-part",\n  "b": 1\n}\n-----BEGIN CERTIFICATE-----\nMIIBszCCAVmg'}
    )
    assert redactor.text('got "id": "Zq7-first-part", then') == "got [redacted:LOGIN] then"
    assert redactor.text("MIIBszCCAVmg {") == "[redacted:LOGIN] {"
    assert redactor.text("-----BEGIN CERTIFICATE-----") == "-----BEGIN CERTIFICATE-----"


def test_a_plain_word_is_hidden_where_it_stands_by_itself() -> None:
    redactor = Redactor({"WORD": "sunflower"})
    assert redactor.text("it is sunflower.") == "it is [redacted:WORD]."
    assert (
        redactor.text("login:sunflower@db sunflowers sunflower_2") == "login:[redacted:WORD]@db sunflowers sunflower_2"
    )
    assert redactor.text(base64.b64encode(b"sunflower").decode()) == "[redacted:WORD]"
    assert redactor.leaks("a field of sunflowers") == []


def test_what_is_learned_later_is_hidden_and_what_was_known_stays_hidden() -> None:
    """A login that renewed itself is known by both of its values; only the latest few are looked for."""
    redactor = Redactor({"LOGIN": "first-value-1", "PIN": "1234"})
    redactor.learn({"LOGIN": "second-value-2", "OTHER": "other-value-3"})
    redactor.learn({})
    assert redactor.text("first-value-1 second-value-2 other-value-3") == (
        "[redacted:LOGIN] [redacted:LOGIN] [redacted:OTHER]"
    )
    assert redactor.leaks("first value 1") == ["LOGIN"]
    redactor.learn({"PIN": "no longer so plain 5"})
    assert redactor.too_plain == ()
    for number in range(4):
        redactor.learn({"LOGIN": f"renewed-value-{number}"})
    assert redactor.text("second-value-2 renewed-value-0") == "second-value-2 [redacted:LOGIN]"


def test_a_value_that_is_current_again_is_the_last_to_be_forgotten() -> None:
    redactor = Redactor({"LOGIN": "first-value-1"})
    for value in ("second-value-2", "third-value-3", "fourth-value-4", "first-value-1", "fifth-value-5"):
        redactor.learn({"LOGIN": value})
    assert redactor.text("first-value-1 second-value-2") == "[redacted:LOGIN] second-value-2"


def test_secret_variables_are_chosen_by_name_or_by_a_password_in_a_url() -> None:
    environment = {
        "PATH": "/usr/bin", "PWD": "/home/x", "GITHUB_TOKEN": "t", "MY_API_KEY": "k", "SMTP_PASS": "p",
        "MAX_TOKENS": "5", "DATABASE_URL": "postgres://app:s3cr%20t@db/app", "SSH_AUTH_SOCK": "/tmp/s", "URL": "http://[",
    }  # fmt: skip
    assert secret_variables(environment) == {
        "GITHUB_TOKEN": "t", "MY_API_KEY": "k", "SMTP_PASS": "p", "DATABASE_URL": "s3cr t",
    }  # fmt: skip


UNITS = [
    "a", "eyJ", "eyJ.", "x://a:", "://a:b", "password=", 'password="', 'password=\\"', "password='\\", "-", "sk-",
    "-----BEGIN PRIVATE KEY-----", "bearer ", "basic AAAA", "token=)", "ghp_", "\n", "password ", "token:",
    "--a-token ", "authorization: bearer ", "password=a[", "?key=", "/hook/1", " ", "github_pat_", "AKIA", "{{",
    "machine a login b password ", "machine ", "login a ", "MTE2", "f" * 32 + "-", "aaa8Q~", "SK0f", "cio1A", "EAAAb1",
    "-----END PRIVATE KEY-----", "x" * 64 + "\n-----END PRIVATE KEY-----", "ab=\n", "-----END PRIVATE",
    "[redacted:", "password: abc #", "password: abc #\n", "password: abc #\r", "--token abc #", "password: abc ",
    "\x1b[", "\x1b]", "\x1b", "\u200b", "\u200b\n", "\x1b[1mpassword=\x1b[0mq7a9b1c3\n",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_with_the_length_not_with_its_square(unit: str) -> None:
    """Sixteen times the text may take about sixteen times as long; a quadratic pattern would take 256 times."""

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        began = time.process_time()
        REDACTOR.text(text)
        return time.process_time() - began

    small = max(min(seconds(15_000) for _ in range(3)), 0.001)
    assert any(seconds(240_000) / small < 80 for _ in range(3))
