"""Secrets never leave the host: passwords, tokens and private keys are masked in whatever was read."""

import re

_KEYWORD = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key"
    r"|credentials?|sas[_-]?key|account[_-]?key|psk)"
)
_NAME = r"(?<![A-Za-z0-9])[\w.-]*?" + _KEYWORD + r"(?:[\w-]{0,24})"
_HARMLESS = r"(?:yes|no|true|false|none|null|on|off|files|sha512|md5|ask|\d{1,5})\b"
_QUOTED = r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'"
_RULES = (
    # user-info of a URL; a password may hold an unescaped slash
    (re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/@:\"'<>]*:[^\s@\"'<>]*|[^\s/@\"'<>]*)@"), r"\1***@"),
    (
        re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.S),
        r"-----BEGIN \1----- ***",
    ),
    (
        re.compile(r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token|digest)\s+)[^\s\"',]+"),
        r"\1***",
    ),
    (re.compile(r"(?i)(\"(?:identity)?auth\"\s*:\s*)" + _QUOTED), r'\1"***"'),
    # key = value, key=value, "key": "value", and key: value to the end of the line
    (
        re.compile(
            r"(?i)(" + _NAME + r"[\"']?[ \t]*=[ \t]*)(?!" + _HARMLESS + r")(?:" + _QUOTED + r"|[^\s,;&\"']+)"
        ),
        r"\1***",
    ),
    (
        re.compile(
            r"(?i)(" + _NAME + r"[\"']?[ \t]*:)(?:([ \t]*)(?!" + _HARMLESS + r")(?:" + _QUOTED + r")"
            r"|([ \t]+)(?!" + _HARMLESS + r")[^\s\"'{\[|>][^\n}]*)"
        ),
        lambda found: found.group(1) + (found.group(2) or found.group(3) or "") + "***",
    ),
    # --password value, and netrc's login/password pairs
    (
        re.compile(r"(?i)(--[\w-]*" + _KEYWORD + r"[\w-]{0,24}[ \t]+)(?!-)(?:" + _QUOTED + r"|[^\s\"',]+)"),
        r"\1***",
    ),
    (re.compile(r"(?i)(\blogin\s+\S+\s+password\s+)\S+"), r"\1***"),
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
            r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bxox[abprs]-[\w-]{10,}|\bnvapi-[\w-]{16,}|\bsk-[A-Za-z0-9_-]{20,}"
        ),
        "***",
    ),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), "***"),
)
_HINTS = re.compile(
    r"(?i)://|"
    + _KEYWORD
    + r"|private key|\$[1-7y][a-z]?\$|\$argon|gh[pousr]_|glpat-|hf_|akia|asia|xox|nvapi-|sk-|eyj"
    r"|auth\"|authorization|chpasswd"
)
_CHPASSWD = re.compile(r"(?m)^([ \t]*(?:-[ \t]*)?[a-z_][\w-]*):(?![ \t/])\S+$")


def mask(text: str) -> str:
    """The text with every password, token and private key replaced by `***`."""
    if not _HINTS.search(text):
        return text
    for pattern, by in _RULES:
        text = pattern.sub(by, text)
    if "chpasswd" in text:
        text = _CHPASSWD.sub(r"\1:***", text)
    return text


def decoded(data: bytes) -> str:
    return mask(data.decode("utf-8", "backslashreplace"))
