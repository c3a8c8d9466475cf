"""Keys of others with a fixed shape are found, and texts that only resemble them are not."""

import pytest

from publisher.write.secret_shapes import SHAPES, find_secrets, tell_secrets

# In two parts each, so that no scanner takes this file for a leak.
_MIXED = "aB3dE5gH7jK9mN2pQ4sT6vW8yZ1cF0rL"
SECRETS = {
    "an API key of Anthropic": ["sk-" + "ant-api03-" + _MIXED * 3],
    "an API key of OpenAI": [
        "sk-" + "proj-" + _MIXED * 2, "sk-" + _MIXED[:20] + "T3Blbk" + "FJ" + _MIXED[:20],
    ],
    "an API key of Google": ["AI" + "za" + _MIXED + "abc"],
    "a token of Hugging Face": ["hf" + "_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAcEgIkMo"],
    "a token of GitHub": [
        "gh" + "p_" + _MIXED + "AbCd", "github" + "_pat_" + _MIXED[:22] + "_" + (_MIXED * 2)[:59],
    ],
    "a token of GitLab": ["gl" + "pat-" + _MIXED[:20]],
    "an access key of AWS": ["AK" + "IA" + "QRSTUVWX2345ZYBD"],
    "a token of Slack": [
        "xo" + "xb-" + "8392716405-8392716405-" + _MIXED[:24],
        "https://hooks." + "slack.com/services/T8A9B7C6D/B8A9B7C6D/" + _MIXED[:24],
    ],
    "a secret key of Stripe": ["sk" + "_live_" + _MIXED],
    "a token of npm": ["np" + "m_" + _MIXED + "AbCd"],
    "a token of PyPI": ["py" + "pi-AgEIcHlwaS5vcmc" + _MIXED * 2],
    "a token of DigitalOcean": ["do" + "p_v1_" + "a94f1c0b7e3d8265" * 4],
    "an API key of SendGrid": ["S" + "G." + _MIXED[:22] + "." + (_MIXED * 2)[:43]],
    "a private key": [
        "-----BEGIN " + "OPENSSH PRIVATE KEY-----\n" + _MIXED * 2,
        "-----BEGIN " + "RSA PRIVATE KEY-----\\n" + _MIXED * 2,
        "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n" + _MIXED * 2,
    ],
}  # fmt: skip


def test_each_shape_is_found_and_only_as_itself():
    assert {*SECRETS} == {shape.what for shape in SHAPES}
    for what, texts in SECRETS.items():
        for text in texts:
            assert [*find_secrets(f"One\nkey='{text}'.\n")] == [(what, 2)], text
            # As part of a longer word, such as base64, it is none.
            assert not [*find_secrets(f"x{text}")] or text.startswith(("-", "https"))


@pytest.mark.parametrize(
    "text",
    [
        "sk-ant-api03-" + "x" * 95,  # placeholders
        "ghp_" + "abcdefgh" * 4 + "abcd",
        "AKIA" + "IOSFODNN7EXAMPLE",  # AWS' documents have it
        "export OPENAI_API_KEY=sk-...",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY-----\n" + _MIXED * 2,
        "-----BEGIN CERTIFICATE-----\n" + _MIXED * 2,
        "SG.1.2", "hf_transfer", "npm_config_registry", "AIza", "Use gh" + "p_ tokens.",
    ],
)  # fmt: skip
def test_what_only_resembles_a_secret_is_none(text: str):
    assert [*find_secrets(text)] == []


def test_warnings_name_the_file_and_the_line():
    key = SECRETS["an access key of AWS"][0]
    told = [
        *tell_secrets(
            f"a\nb {key}",
            [
                ("run.sh", f"\n\n{key}\n".encode()),
                ("deep/id_rsa", b"\xff\x00"),
                ("id_rsa.pub", b"ssh-rsa AAAA"),
                ("tls.pem", b"\xff"),
                ("ca.pem", b"-----BEGIN CERTIFICATE-----\n"),
                ("store.p12", SECRETS["a private key"][0].encode()),
            ],
        )
    ]
    assert [one.partition(". ")[0].partition("like ")[2] for one in told] == [
        "an access key of AWS in line 2 of the text",
        "an access key of AWS at run.sh:3",
        "a private key in deep/id_rsa, by its name",
        "a private key in tls.pem, by its name",
        "a private key at store.p12:1",
    ]
    assert all(one.startswith("secret_suspected: ") and key not in one for one in told)
