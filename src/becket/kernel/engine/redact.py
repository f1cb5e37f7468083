"""Redaction: secrets are replaced by `[redacted:kind]` before a text leaves or is stored (L25).

Known values are found exactly and in their usual encodings; unknown ones by their shape. Every pattern runs in linear
time: unbounded repeats are never followed by something that can fail, look-aheads are bounded. What begins at a name of
a secret is looked for only where a name ends: one scan for names serves several rules.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote, urlsplit

from becket.kernel.contract.base import Json
from becket.kernel.engine.known_secrets import KnownSecret, mark, squeeze, worth_looking_for

OWN_PREFIX = "bk_"
"""What every bearer token that Becket itself hands out begins with."""

_MARK = re.compile(r"\[redacted:[^\]]*\]")


_KEYS = r"[_-]?(?:key|secret)"
_NAMES = (  # by their first letters: this is tried at every letter of a text
    rf"a(?:pi|c(?:cess|count)|uth){_KEYS}|c(?:redentials?|lient{_KEYS})|encryption{_KEYS}"
    rf"|p(?:ass(?:w(?:or)?d|phrase)|rivate{_KEYS}"
    r"|wd(?![\"']?[ \t]{0,8}+[:=]{1,2}[ \t]{0,8}+[\"']?[/~]))"  # not the working directory
    rf"|s(?:ecret(?:[_-]?(?:access[_-]?)?key)?|(?:hared|igning){_KEYS})|token"
)
_ASSIGNS = r"\\?[\"']?[ \t]{0,8}+(?>=>|:=|==?|:)[ \t]{0,8}+"
# What stands where a secret would stand, and is none: a mark, a variable, a template, a mask, a plain word.
_HOLDERS = r"\[redacted:|\$[{(]|\$[A-Z_][A-Z0-9_]*(?![A-Za-z0-9_])|\{{1,2}[ \w.]{1,64}\}|<[\w -]{1,64}>|%\(|\*{2}|\.{3}"
_WORDS = (
    r"(?i:true|false|none|null|nil|undefined|required|optional|missing|invalid|incorrect|expired|empty|string|str|bytes"
    rf"|int|bool|any|yes|no|x{{3,}}|{_NAMES})|[0-9]{{1,3}}"
)
_CODE = r"[A-Za-z_][\w.]{0,80}[(\[]|(?:self|cls|os|process|settings|config|args)\.[A-Za-z_]"
_NOT = rf"(?!{_HOLDERS}|(?:{_WORDS})(?=\\?[\"']|\Z))"
_NOT_BARE = rf"(?!{_HOLDERS}|(?:{_WORDS})(?![\w-])|{_CODE})"
_BARE = r"[^\s&;\"'<>`]*[^\s&;\"'<>`),}.]"
_QUOTED = (
    rf"\\\"{_NOT}(?P<escaped>[^\\\"'\r\n]+(?:\\(?!\")[^\\\"'\r\n]*)*)"
    rf"|\"{_NOT}(?P<double>(?:[^\"\\\r\n]|\\.)[^\"\\\r\n]*(?:\\.[^\"\\\r\n]*)*)"
    rf"|'{_NOT}(?P<single>(?:[^'\\\r\n]|\\.)[^'\\\r\n]*(?:\\.[^'\\\r\n]*)*)"
)
_CHARS = r"[A-Za-z0-9._~+/=-]"


def _is_basic(match: re.Match[str]) -> bool:
    """`Basic` is also a plain word: only base64 of `user:password` counts."""
    try:
        return b":" in base64.b64decode(match["secret"] + "=" * (-len(match["secret"]) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_jwt(match: re.Match[str]) -> bool:
    return match["secret"].count(".") >= 2


def _is_discord(match: re.Match[str]) -> bool:
    """Dotted names look like it; its first part is base64 of the bot's number."""
    first = match[0].partition(".")[0]
    return base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).isdigit()


_AWS_ID = re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}")
_NEAR = 200
_BASE64 = r"[A-Za-z0-9/+=]"


def _is_near_aws_id(match: re.Match[str]) -> bool:
    """Forty letters may be anything; beside the name of an access key they are its secret."""
    start, end = match.span()
    return _AWS_ID.search(match.string, max(0, start - _NEAR), end + _NEAR) is not None


def _folded(text: str) -> str:
    """In small letters and of the same length, with the few strangers that a pattern without case takes for i and s."""
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").lower().replace("\u0131", "i").replace("\u017f", "s")


# With a look at what follows: where it is a quote or no plain word, one of the rules may find a secret.
_VALUE = rf"(?!(?:{_WORDS.replace('(?i:', '(?:')})(?![\w-]))[^\s\"']"
_NAME = re.compile(rf"(?:{_NAMES})(?={_ASSIGNS}(?:\\?[\"']|{_VALUE})|={_VALUE}|[ \t]{{1,8}}+{_VALUE})")


class _Text:
    """A text on its way through the rules."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._names: tuple[list[int], list[int]] | None = None

    def names(self) -> tuple[list[int], list[int]]:
        """Where names of secrets begin and end that something is assigned to. No two overlap: none has such a sign in
        it. Numbers in two lists, not pairs: of a million of those the garbage collector would make more work than we.
        """
        if self._names is None:
            starts, ends = [], []
            for name in _NAME.finditer(_folded(self.text)):
                starts.append(name.start())
                ends.append(name.end())
            self._names = starts, ends
        return self._names


_compiled = cache(re.compile)  # when a hint is first seen: most texts of most runs hold none


@dataclass(frozen=True, slots=True)
class _Rule:
    """The last named group of the pattern is the secret; without one, the whole match."""

    kind: str
    hints: tuple[str, ...]  # a text without any of them, in any case, cannot match
    pattern: str
    judge: Callable[[re.Match[str]], bool] | None = None  # where the shape alone does not tell

    def applied(self, to: _Text) -> str:
        return _compiled(self.pattern).sub(self._hide, to.text)

    def _hide(self, match: re.Match[str]) -> str:
        if self.judge is not None and not self.judge(match):
            return match[0]
        start, end = match.span(match.lastgroup or 0)
        return match[0][: start - match.start()] + mark(self.kind) + match[0][end - match.start() :]


@dataclass(frozen=True, slots=True)
class _AfterName:
    """The pattern begins where a name of a secret ends, and its last group is the secret. `head` is what stands
    between the beginning of the line, or of the option, and that name.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: str
    head: str | None = None

    def applied(self, to: _Text) -> str:
        text, hidden, match_at = to.text, mark(self.kind), _compiled(self.pattern).match
        head = None if self.head is None else _compiled(self.head)
        pieces: list[str] = []
        done = 0
        for start, end in zip(*to.names(), strict=True):
            if start < done:
                continue
            # First, for it is short; the pattern may look as far as the line's end, and a line has at most one head.
            if head is not None and head.search(text, max(done, start - _LONGEST_HEAD), start) is None:
                continue
            if (match := match_at(text, end)) is None:
                continue
            first, last = match.span(match.lastgroup or 0)
            pieces += (text[done:first], hidden)
            done = last
        return "".join((*pieces, text[done:])) if pieces else text


_LONGEST_HEAD = 120
_NAME_HINTS = "passw passphrase pwd secret token credential key"


def _rule(kind: str, hints: str, pattern: str, judge: Callable[[re.Match[str]], bool] | None = None) -> _Rule:
    return _Rule(kind, tuple(hints.split()), pattern, judge)


def _vendor(kind: str, hints: str, pattern: str) -> _Rule:
    """A vendor's token: how it begins tells."""
    return _rule(kind, hints, rf"{_word(pattern, '[A-Za-z0-9]')}(?![A-Za-z0-9])")


def _exact(kind: str, hints: str, pattern: str, judge: Callable[[re.Match[str]], bool] | None = None) -> _Rule:
    """The same where only its length tells it from a digest, a name or a line of an encoded file."""
    return _rule(kind, hints, rf"{_word(pattern, '[A-Za-z0-9_+/.~-]')}(?![A-Za-z0-9_+/~-])", judge)


def _word(pattern: str, not_before: str) -> str:
    """The pattern where none of those letters stands before it. Letters come first where it begins with two: they are
    searched for several times faster than a look-behind is tried.
    """
    begins = pattern[:2]
    if not begins.isalnum():
        return rf"(?<!{not_before})(?:{pattern})"
    return rf"{begins}(?<!{not_before}{begins}){pattern[2:]}"


def _after_name(pattern: str, head: str | None = None, hints: str = _NAME_HINTS) -> _AfterName:
    return _AfterName("secret", tuple(hints.split()), pattern, rf"{head}\Z" if head else None)


_OVER_LINES = _rule(
    "private-key",
    "-----BEGIN",
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
)
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# Read from its end backwards: up to two short lines, then long ones; or few short ones as far as the text's beginning.
# Between lines may stand what tools put before each; a line break may be spelt `\\n`.
_PEM_CHAR, _PEM_GAP = r"(?:[A-Za-z0-9+/=](?!\\))", r"(?:[\s|>#\"',+]|[nr]\\|E(?=\n))"
_PEM_BODY = re.compile(
    rf"{_PEM_GAP}*+(?:(?:{_PEM_CHAR}{{1,39}}+{_PEM_GAP}++){{0,2}}"
    rf"(?:{_PEM_CHAR}{{40,}}+(?:{_PEM_GAP}++|\Z))++(?:{_PEM_CHAR}{{1,39}}+\Z)?"
    rf"|(?:{_PEM_CHAR}{{1,39}}+(?:{_PEM_GAP}++|\Z)){{1,3}}+\Z)"
)
_LARGEST_PEM = 100_000


def _without_headless_keys(text: str) -> str:
    """Private keys of which somebody cut off the first line."""
    pieces: list[str] = []
    done = seen = 0
    for end in _PEM_END.finditer(text):
        before = text[max(seen, end.start() - _LARGEST_PEM) : end.start()]
        seen = end.end()
        if (body := _PEM_BODY.match(before[::-1])) is not None:
            pieces += (text[done : end.start() - body.end()], mark(_OVER_LINES.kind))
            done = end.end()
    return "".join((*pieces, text[done:])) if pieces else text


_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_VENDORS = (
    _vendor("artifactory", "akcp", r"AKCp[A-Za-z0-9]{69}"),
    _vendor("atlassian", "atatt3x atctt3x", r"AT[AC]TT3x[\w=-]{60,250}"),
    _exact("azure", "q~", r"[\w~.]{3}[0-9]Q~[\w~.-]{31,34}"),
    _exact("cargo", "cio", r"cio(?=[a-z0-9]{0,31}[A-Z])(?=[A-Za-z]{0,31}[0-9])[A-Za-z0-9]{32}"),
    _vendor("cloudflare", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,160}"),
    _exact("databricks", "dapi", r"dapi[0-9a-f]{32}(?:-[0-9]{1,2})?"),
    _exact(
        "discord",
        "md mt mj mz nd nt nj nz od ot",  # how base64 of digits begins
        r"[MNO][DTjz][\w-]{21,26}\.[\w-]{6}\.[\w-]{27,40}",
        _is_discord,
    ),
    _vendor("docker", "dckr_", r"dckr_[po]at_[\w-]{27,32}"),
    _vendor("doppler", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    _vendor("dynatrace", "dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _vendor("figma", "figd_", r"figd_[\w-]{40,50}"),
    _vendor("fly", "fm1 fm2", r"fm[12][ar]?_[A-Za-z0-9+/_-]{40,4000}={0,2}"),
    _vendor("fly", "fo1_", r"fo1_[\w-]{43}"),
    _vendor("grafana", "glsa_", r"glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}"),
    _vendor("grafana", "glc_", r"glc_[A-Za-z0-9+/]{32,400}={0,2}"),
    _vendor("groq", "gsk_", r"gsk_[A-Za-z0-9]{52}"),
    _vendor("heroku", "hrku-", rf"HRKU-(?:AA[\w-]{{58}}|{_UUID})"),
    _vendor("linear", "lin_", r"lin_(?:api_[A-Za-z0-9]{40}|oauth_[0-9a-f]{64})"),
    _exact("mailchimp", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    _exact("mailgun", "key-", r"(?:pub)?key-[0-9a-f]{32}"),
    _vendor("newrelic", "nrak-", r"NRAK-[A-Z0-9]{27}"),
    _vendor("notion", "secret_", r"secret_[A-Za-z0-9]{43}"),
    _vendor("notion", "ntn_", r"ntn_[A-Za-z0-9]{46}"),
    _vendor("perplexity", "pplx-", r"pplx-[A-Za-z0-9]{48,56}"),
    _vendor("planetscale", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w=.-]{32,64}"),
    _vendor("postman", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _exact("pulumi", "pul-", r"pul-[0-9a-f]{40}"),
    _exact("replicate", "r8_", r"r8_[A-Za-z0-9]{37}"),
    _vendor("rubygems", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _vendor("sentry", "sntrys_", r"sntrys_[A-Za-z0-9+/=_-]{40,1000}"),
    _vendor("sentry", "sntryu_", r"sntryu_[0-9a-f]{64}"),
    _vendor("shopify", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _exact("square", "eaaa", r"EAAA(?!A)(?=[A-Za-z_-]{0,59}[0-9])[\w-]{60}"),
    _exact("square", "sq0", r"sq0(?:atp-[\w-]{22}|csp-[\w-]{43})"),
    _vendor("supabase", "sbp_", r"sbp_[0-9a-f]{40}"),
    _vendor("terraform", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}"),
    _exact("twilio", "sk", r"SK[0-9a-f]{32}"),
    _vendor("vault", "hvs. hvb. hvr.", r"hv[sbr]\.(?=[A-Za-z_-]{0,64}[0-9])[\w-]{24,300}"),
    _vendor("xai", "xai-", r"xai-[A-Za-z0-9]{80}"),
)
# A word after `password` may be prose; after a machine and a login, or with a digit or a sign in it, it is none.
_ODD = r"(?=\S{6})(?=[^\s0-9!@#$%^*+=~]{0,64}+[0-9!@#$%^*+=~])"
_NETRC = (
    _rule(
        "netrc",
        "machine",
        r"machine(?<!\wmachine)\s{1,40}+\S{1,256}+\s{1,40}+login\s{1,40}+\S{1,256}+\s{1,40}+password\s{1,40}+"
        rf"(?P<secret>{_NOT_BARE}\S+)",
    ),
    _rule(
        "netrc",
        "login",
        rf"login(?<!\wlogin)[ \t]{{1,8}}+\S{{1,256}}+\s{{1,40}}+password[ \t]{{1,8}}+(?P<secret>{_ODD}{_NOT_BARE}\S+)",
    ),
    _rule(
        "netrc",
        "password",
        rf"(?m:^)[ \t]{{0,40}}+password[ \t]{{1,8}}+(?P<secret>{_ODD}{_NOT_BARE}\S{{6,512}}+)(?=[ \t]{{0,40}}+(?m:$))",
    ),
)
_RULES = (  # each looks at one line at a time
    _rule("url-password", "://", rf"://[^\s\[/:@\"'<>?#]{{0,256}}:(?P<secret>{_NOT}[^\s/\"'<>?#]+)@"),
    _rule("url-user", "://", r"://(?P<secret>[A-Za-z0-9_-]{20,})@"),
    _rule(
        "authorization",
        "authorization",
        rf"(?i:authorization{_ASSIGNS}\\?[\"']?"
        r"(?:bearer|basic|token|digest|negotiate|api-?key|ntlm|aws4-hmac-sha256)[ \t]{1,8}+)"
        rf"(?P<secret>{_NOT_BARE}[^\r\n\"'\\]+)",
    ),
    _rule(
        "bearer",
        "bearer",
        rf"(?i:bearer)[ \t]{{1,8}}+(?P<secret>(?={_CHARS}{{0,64}}[0-9]){_CHARS}{{8,}}|{_CHARS}{{32,}})",
    ),
    _rule("basic", "basic", r"(?i:basic)[ \t]{1,8}+(?P<secret>[A-Za-z0-9+/]{6,1024}={0,2})", _is_basic),
    _after_name(rf"{_ASSIGNS}(?:{_QUOTED})"),
    _after_name(rf"=(?P<bare>{_NOT_BARE}{_BARE})"),
    _after_name(  # token: abc123, in the middle of a line: prose has no digits there
        rf"{_ASSIGNS}(?=[^\s\"'<>&;]{{6}})(?=[^\s\"'<>&;0-9!@#$%^*+=~]{{0,64}}+[0-9!@#$%^*+=~])"
        rf"(?P<odd>{_NOT_BARE}{_BARE})"
    ),
    _after_name(  # db_password: word, alone on its line
        rf"[ \t]{{0,8}}+[:=][ \t]{{1,8}}+(?P<line>{_NOT_BARE}[^\s#\"']{{3,512}})(?=[ \t]{{0,40}}+(?:#[^\r\n]*)?(?m:$))",
        head=r"(?m:^)[ \t]{0,40}+(?:-[ \t]{1,4}+)?[\w.-]{0,64}",
    ),
    _after_name(
        rf"[ \t]{{1,8}}+(?=[^\s\"']{{6}})(?P<option>(?!-){_NOT_BARE}"
        rf"(?:(?=[^\s\"'0-9]{{0,64}}+[0-9])[^\s\"']{{6,}}|[^\s\"']{{16,}}))",
        head=r"(?<![\w-])--[\w-]{0,40}",
        hints="--",
    ),
    _rule(
        "url-key",
        "key= sig= signature=",
        rf"[?&](?i:(?:x-(?:amz|goog)-)?(?:key|sig|signature))=(?P<secret>{_NOT_BARE}[^\s&#\"'<>]{{8,}})",
    ),
    _rule("webhook", "/hook/", r"(?i:/hook/)(?P<secret>(?=[A-Za-z0-9-]{0,64}[0-9])[A-Za-z0-9-]{20,})"),
    _rule("webhook", "slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{10,})"),
    _rule("webhook", "/webhooks/", r"/api/webhooks/[0-9]{5,40}/(?P<secret>[\w-]{20,})"),
    _rule("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _rule("github", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    _rule("gitlab", "gl", r"gl(?:pat|ptt|dt|rt|oas|soat|ft|imt|agent|cbt)-[A-Za-z0-9_-]{20,}"),
    _rule("slack", "xox xapp-", r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}"),
    _rule("api-key", "sk-", r"(?<![A-Za-z0-9])sk-(?=[a-z_-]{0,64}+[A-Z0-9])[A-Za-z0-9_-]{20,}"),
    _rule("api-key", "k_live_ k_test_ whsec_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{16,}"),
    _rule("api-key", "npm_ pypi- hf_", r"npm_[A-Za-z0-9]{36,}|pypi-[A-Za-z0-9_-]{50,}|hf_[A-Za-z0-9]{30,}"),
    _rule("sendgrid", "sg.", r"(?<![\w.])SG\.[\w-]{16,32}\.[\w-]{32,64}(?![\w-])"),
    _rule("becket", "bkt_", r"bkt_[A-Za-z0-9_-]{43}"),
    _rule("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{32,}"),
    _rule("age", "age-secret-key-1", r"(?i:AGE-SECRET-KEY-1[02-9ac-hj-np-z]{58})"),
    _rule("telegram", ":aa", r"(?<![0-9])[0-9]{8,10}:AA[\w-]{33}(?![\w-])"),
    _rule(  # before its id is hidden
        "aws",
        "akia asia",
        rf"(?<!{_BASE64})(?=[a-z0-9/+]{{0,39}}[A-Z])(?=[A-Z0-9/+]{{0,39}}[a-z])(?=[A-Za-z/+]{{0,39}}[0-9])"
        rf"(?P<secret>[A-Za-z0-9/+]{{40}})(?!{_BASE64})",
        _is_near_aws_id,
    ),
    _rule("aws", "akia asia", _AWS_ID.pattern),
    _rule("google", "aiza ya29. gocspx-", r"AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"),
    *_VENDORS,
    *_NETRC,
    # The whole run of segments is taken whether it is a token or not, so that no start is scanned twice.
    _rule("jwt", "eyj", r"(?P<secret>eyJ[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)", _is_jwt),
    _rule("becket-token", OWN_PREFIX, rf"(?<![A-Za-z0-9]){OWN_PREFIX}[A-Za-z0-9_-]{{20,}}"),
)

_HINTS = tuple(dict.fromkeys(hint for rule in _RULES for hint in rule.hints))

_SECRET_FIELD = re.compile(rf"(?i:{_NAMES}|authorization)$")
_HOLDER = re.compile(_HOLDERS)
_WORD = re.compile(_WORDS)
_SECRET_VARIABLE = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|SECRET|TOKEN|KEY|APIKEY|CREDENTIALS?|AUTH|PAT|DSN|WEBHOOK(?:_URL)?)$"
)


def secret_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables whose names or contents say that they hold a secret: what a Redactor should know."""
    found: dict[str, str] = {}
    for name, value in environment.items():
        if _SECRET_VARIABLE.search(name.upper()) and name != "PWD":
            found[name] = value
        elif password := _url_password(value):
            found[name] = password
    return found


def _url_password(value: str) -> str | None:
    try:
        return unquote(urlsplit(value).password or "") or None
    except ValueError:
        return None


_UNSEEN = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?|\x1b.?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""What is dropped where text is shown, or shown as nothing."""
_PIECE = 256_000

_REMEMBERED = 4
"""Values of one name that are looked for: a login that renewed itself may still be printed with its former one."""


class Redactor:
    """Knows the secrets by name. One for all, for as long as a process lives; it holds them, so it is never stored or
    shown.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._values: dict[str, tuple[str, ...]] = {}
        self._known: tuple[KnownSecret, ...] = ()
        self.too_plain: tuple[str, ...] = ()
        """Names of secrets that are too short or plain to be looked for in text; `doctor` may say so."""
        self.learn(secrets)

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Look for these from now on too. Nothing is forgotten for want of being told again."""
        chosen = {name: value for name, value in secrets.items() if worth_looking_for(value)}
        self.too_plain = tuple(sorted({*self.too_plain, *secrets} - chosen.keys()))
        new = {name: value for name, value in chosen.items() if value not in self._values.get(name, ())}
        for name, value in chosen.items():  # what is current is the last to be forgotten, whether it is new or not
            others = (each for each in self._values.get(name, ()) if each != value)
            self._values[name] = (value, *others)[:_REMEMBERED]
        if not new:
            return
        pairs = [(name, value) for name, values in self._values.items() for value in values]
        known = [each for pair in pairs for each in KnownSecret.of(*pair)]
        self._known = tuple(sorted(known, key=lambda each: -max(map(len, each.exact))))

    def text(self, text: str) -> str:
        """Also where a secret is split by what nobody sees: a terminal or a browser would put it together again."""
        return self._as_shown(self._as_written(text))

    def _as_shown(self, text: str) -> str:
        if _UNSEEN.search(text) is None:
            return text
        lines = text.split("\n")
        shown = {number: _UNSEEN.sub("", line) for number, line in enumerate(lines) if _UNSEEN.search(line)}
        hidden = self._as_written("\n".join(shown.values())).split("\n")
        if len(hidden) != len(shown):  # a secret of several lines
            hidden = [self._as_written(line) for line in shown.values()]
        for (number, line), left in zip(shown.items(), hidden, strict=True):
            if left != line:
                lines[number] = left
        return "\n".join(lines)

    def _as_written(self, text: str) -> str:
        for known in self._known:
            text = known.hidden(text)
        if _OVER_LINES.hints[0] in text:
            text = _OVER_LINES.applied(_Text(text))
        if "-----END" in text:
            text = _without_headless_keys(text)
        return "".join(map(_by_rules, _pieces(text))) if len(text) > _PIECE else _by_rules(text)

    def value(self, value: Json) -> Json:
        """The same for a JSON value: texts everywhere, and whatever a field of a secret's name holds."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self._field(key, inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.value(inner) for inner in value)
        return value

    def leaks(self, value: Json) -> list[str]:
        """Names of known secrets of which a trace is left: split, spaced, re-encoded or inside an encoded text."""
        if not self._known:
            return []
        views = {view for keys in (True, False) for view in _views("\n".join(_texts(value, keys)))}
        squeezed = {squeeze(view) for view in views}
        return [known.name for known in self._known if known.left_in(views, squeezed)]

    def _field(self, key: Json, inner: Json) -> Json:
        if not isinstance(key, str) or not _SECRET_FIELD.search(key):
            return self.value(inner)
        if isinstance(inner, list | tuple):
            return type(inner)(self._field(key, each) for each in inner)
        if inner is None or isinstance(inner, bool | Mapping) or inner == "":
            return self.value(inner)
        shown = str(inner)
        return self.value(inner) if _HOLDER.match(shown) or _WORD.fullmatch(shown) else mark("secret")


def _pieces(text: str) -> Iterator[str]:
    """Whole lines. A pattern holds the interpreter while it looks through one text: it must not be for seconds."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + _PIECE) + 1
        end = end or len(text)
        yield text[at:end]
        at = end


def _by_rules(text: str) -> str:
    folded = _folded(text)
    hints = {hint for hint in _HINTS if hint in folded}
    if not hints:  # nearly every text
        return text
    now = _Text(text)
    for rule in _RULES:
        if not hints.isdisjoint(rule.hints) and (text := rule.applied(now)) != now.text:
            now = _Text(text)
    return now.text


def _views(text: str) -> Iterator[str]:
    """The text as it is and as a reader at the other end may decode it."""
    once = unquote(text)
    for view in (text, once, unquote(once), html.unescape(text)):
        yield _MARK.sub("\n", view)


def _texts(value: Json, keys: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if keys:
                yield str(key)
            yield from _texts(inner, keys)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, keys)
    elif value is not None:
        yield str(value)
