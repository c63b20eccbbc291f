"""Secrets never leave the host: passwords, tokens and private keys are masked in whatever was read."""

import re

_KEYWORD = (
    r"(?:(?<!NO)passw(?:or)?d|passphrase|(?<![A-Za-z])pass(?![A-Za-z])|pwd|secret|token|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|(?:pre)?shared[_-]?key|auth[_-]?key|authtok|bindpw|bindpassword|credentials?|sas[_-]?key|account[_-]?key|psk)"
)
# The keyword and what follows it in the same name. What precedes it need not be matched, and bounded
# lengths keep a long line without blanks from costing more than a short one.
_NAME = _KEYWORD + r"(?:[\w-]{0,24})"
_HARMLESS = r"(?!(?:yes|no|true|false|none|null|on|off|all|files|sha512|md5|ask|\d{1,3})\b)"
_IN_QUOTES = r"([\"'])(?:(?!\2)[^\\\n]|\\.)*\2"
_RULES = (
    # user-info of a URL; a password may hold an unescaped slash
    (re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/@:\"'<>]*:[^\s@\"'<>]*|[^\s/@\"'<>]*)@"), r"\1***@"),
    (
        re.compile(r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token|digest)\s+)[^\s\"',]+"),
        r"\1***",
    ),
    (re.compile(r"(?i)(\"(?:identity)?auth\"\s*:\s*)" + _IN_QUOTES), r"\1\2***\2"),
    # "key": "value" and key='value': the quotes stay, so that JSON stays JSON
    (re.compile(r"(?i)(" + _NAME + r"[\"']?[ \t]*[:=][ \t]*)" + _IN_QUOTES), r"\1\2***\2"),
    (re.compile(r"(?i)(" + _NAME + r"\"[ \t]*:[ \t]*)" + _HARMLESS + r"[\d.eE+-]+"), r'\1"***"'),
    # key=value up to a separator, and key: value to the end of the line
    (re.compile(r"(?i)(" + _NAME + r"[ \t]*=[ \t]*)" + _HARMLESS + r"[^\s,;&\"']+"), r"\1***"),
    (re.compile(r"(?i)(" + _NAME + r"[ \t]*:[ \t]+)" + _HARMLESS + r"[^\s\"'{\[|>][^\n}]*"), r"\1***"),
    # --password value, and netrc's login/password pairs
    (
        re.compile(r"(?i)(--[\w-]{0,32}?" + _KEYWORD + r"[\w-]{0,24}[ \t]+)(?![-\"'])[^\s\"',]+"),
        r"\1***",
    ),
    (re.compile(r"(?i)(--[\w-]{0,32}?" + _KEYWORD + r"[\w-]{0,24}[ \t]+)" + _IN_QUOTES), r"\1\2***\2"),
    (re.compile(r"(?i)((?:\blogin\s+\S+|^)\s+password\s+)\S+[ \t]*$"), r"\1***"),
    # a shared access signature in a URL; user%password of mount.cifs(8); -p and -u of sshpass and curl
    (re.compile(r"(?i)([?&]sig=)[^\s&\"']+"), r"\1***"),
    (re.compile(r"(\buser(?:name)?=[^\s,%]{1,64}%)[^\s,]+"), r"\1***"),
    (re.compile(r"(\bsshpass\s+-p\s*)\S+"), r"\1***"),
    (re.compile(r"(\bcurl\b[^\n]{0,200}?\s(?:-u|--user)\s+[^\s:]{1,64}:)[^\s\"']+"), r"\1***"),
    (re.compile(r"(?i)(\bbind(?:pw|password)\s+)(?![=:])\S+"), r"\1***"),
    # crypt(3) hashes and well-known token shapes
    (re.compile(r"\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|argon2\w*)\$[./A-Za-z0-9$=,+-]{8,}"), "***"),
    (
        re.compile(
            r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bhf_[A-Za-z0-9]{16,}"
        ),
        "***",
    ),
    (
        re.compile(
            r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bxox[abprs]-[\w-]{10,}|\bnvapi-[\w-]{16,}"
            # sk-ssh-… and sk-ecdsa-… are names of key types (ssh-keygen(1)).
            r"|\bsk-(?!ssh-|ecdsa-)[A-Za-z0-9_-]{20,}"
        ),
        "***",
    ),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), "***"),
)
# No rule matches a line that has none of these; looking for them is a hundred times faster than the rules.
_HINTS = (
    "://|pass|pwd|bindpw|shared|sig=|curl|user=|username=|secret|token|api|access|private|auth|credential|sas|account|psk|$1$|$2|$5$|$6$|$7$|$y$|$gy$"
    "|$sha1|$argon|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|hf_|akia|asia|xox|nvapi-|sk-|eyj"
).split("|")
_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.S)
_CHPASSWD = re.compile(r"(?m)^([ \t]*(?:-[ \t]*)?[a-z_][\w-]*):(?![ \t/])\S+$")


def mask(text: str) -> str:
    """The text with every password, token and private key replaced by `***`."""
    if not _hinted(text):
        return text
    if "PRIVATE KEY-----" in text:
        text = _PRIVATE_KEY.sub(r"-----BEGIN \1----- ***", text)
    if "chpasswd" in text:
        text = _CHPASSWD.sub(r"\1:***", text)
    return "\n".join(_line(line) if _hinted(line) else line for line in text.split("\n"))


def _hinted(text: str) -> bool:
    lowered = text.lower()
    return any(hint in lowered for hint in _HINTS)


def _line(text: str) -> str:
    for pattern, by in _RULES:
        text = pattern.sub(by, text)
    return text


def decoded(data: bytes) -> str:
    return mask(data.decode("utf-8", "backslashreplace"))
