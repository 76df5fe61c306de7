"""What goes over the wire: where requests go, and who asks. The store here only notes it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from emulators.proxy import ALWAYS, Fault, Proxy, Seen
from moorage.errors import InvalidArgument, StorageError
from moorage_s3.settings import Settings
from moorage_s3.storage import S3Storage

Environment = pytest.MonkeyPatch


def asked(storage: S3Storage, stub: Proxy, url: str = "") -> Seen:
    """The one request that a listing has cost."""
    stub.seen.clear()
    assert storage.list(url or f"s3://{stub.url}/bkt/models") == ()
    return next(iter(stub.seen))


def signed(seen: Seen) -> tuple[str, str]:
    """The key id and the region of a signed request."""
    match = re.search(r"Credential=([^/]*)/\d+/([^/]*)/s3/", seen.headers["authorization"])
    assert match
    return match[1], match[2]


def test_path_style_where_the_url_names_a_server(keys: Environment, stub: Proxy, storage: S3Storage) -> None:
    seen = asked(storage, stub)
    assert seen.headers["host"] == f"127.0.0.1:{stub.port}"
    assert seen.target.startswith("/bkt?list-type=2&prefix=models%2F")
    assert signed(seen) == ("test-key-id", "us-east-1")
    assert "moorage/" in seen.headers["user-agent"]


@pytest.mark.parametrize(
    "style, host, path",
    [
        ("virtual", "bkt.store.example", "/?"),
        ("path", "store.example", "/bkt?"),
        ("auto", "store.example", "/bkt?"),
        ("", "store.example", "/bkt?"),
    ],
)
def test_addressing_style(keys: Environment, stub: Proxy, storage: S3Storage, style: str, host: str, path: str) -> None:
    keys.setenv("MOORAGE_S3_ADDRESSING_STYLE", style)
    keys.setenv("http_proxy", stub.url)
    seen = asked(storage, stub, "s3://http://store.example:80/bkt/models")
    assert seen.headers["host"].removesuffix(":80") == host
    assert re.sub(r":80(?=/)", "", seen.target).startswith(f"http://{host}{path}")


def test_the_addressing_style_of_a_profile(keys: Environment, stub: Proxy, storage: S3Storage, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[default]\ns3 =\n  addressing_style = virtual\n")
    keys.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    keys.setenv("http_proxy", stub.url)
    assert asked(storage, stub, "s3://http://store.example/bkt").headers["host"] == "bkt.store.example"


@pytest.mark.parametrize("address", ["minio_svc:9000", "a_b.c_d:80", "[::1]:9000", "UPPER.example:81"])
def test_addresses_are_used_as_they_are_written(keys: Environment, stub: Proxy, storage: S3Storage, address: str) -> None:
    keys.setenv("http_proxy", stub.url)
    keys.setenv("no_proxy", "")
    seen = asked(storage, stub, f"s3://{address}/My_Bucket/date=2024 01/ä")
    assert seen.target.lower().startswith(f"http://{address.removesuffix(':80').lower()}".lower())
    assert "/My_Bucket?" in seen.target
    assert "prefix=date%3D2024%2001%2F%C3%A4%2F" in seen.target
    assert signed(seen)[0] == "test-key-id"


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_an_endpoint_from_the_environment(keys: Environment, stub: Proxy, storage: S3Storage, variable: str) -> None:
    keys.setenv(variable, stub.url)
    assert asked(storage, stub, "s3://bkt/models").target.startswith("/bkt?")
    with Proxy() as other:
        keys.setenv(variable, other.url)
        asked(storage, stub)  # the URL's own server wins
        assert not other.seen


@pytest.mark.parametrize(
    "variables, region",
    [
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, "eu-west-1"),
        ({"AWS_REGION": "eu-west-2"}, "eu-west-2"),
        ({"AWS_REGION": "eu-west-2", "AWS_DEFAULT_REGION": "eu-west-1"}, "eu-west-1"),
        ({"AWS_PROFILE": "other"}, "ap-south-1"),
        ({"AWS_PROFILE": "other", "AWS_REGION": "eu-west-2"}, "eu-west-2"),
    ],
)
def test_the_region(
    keys: Environment, stub: Proxy, storage: S3Storage, tmp_path: Path, variables: dict[str, str], region: str
) -> None:
    (tmp_path / "config").write_text("[profile other]\nregion = ap-south-1\n")
    for name, value in {**variables, "AWS_CONFIG_FILE": str(tmp_path / "config")}.items():
        keys.setenv(name, value)
    assert signed(asked(storage, stub))[1] == region


def test_a_session_token_goes_along(keys: Environment, stub: Proxy, storage: S3Storage) -> None:
    keys.setenv("AWS_SESSION_TOKEN", "test-session-token")
    assert asked(storage, stub).headers["x-amz-security-token"] == "test-session-token"


def test_anonymous_requests_are_not_signed(keys: Environment, stub: Proxy, storage: S3Storage) -> None:
    keys.setenv("MOORAGE_S3_ANONYMOUS", "true")
    assert "authorization" not in asked(storage, stub).headers
    assert (
        "authorization" not in asked(storage, stub, f"s3://localhost_:{stub.port}/b".replace("localhost_", "localhost")).headers
    )


def test_a_profile_names_the_keys(aws: Environment, stub: Proxy, storage: S3Storage, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        "[default]\naws_access_key_id = d\naws_secret_access_key = s\n[p]\naws_access_key_id = p\naws_secret_access_key = s\n"
    )
    aws.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    aws.setenv("AWS_CONFIG_FILE", str(file))
    assert signed(asked(storage, stub))[0] == "d"
    aws.setenv("AWS_PROFILE", "p")
    storage.close()
    assert signed(asked(storage, stub))[0] == "p"
    aws.setenv("AWS_ACCESS_KEY_ID", "from-environment")
    aws.setenv("AWS_SECRET_ACCESS_KEY", "s")
    storage.close()
    assert signed(asked(storage, stub))[0] == "from-environment"


def entry(key: str, **more: str) -> dict[str, str]:
    return {"key_id": key, "secret_key": "test-hushhush", "region": "", "session_token": "", "profile": "", **more}


def test_the_longest_name_in_the_credential_file_counts(
    keys: Environment, stub: Proxy, storage: S3Storage, tmp_path: Path
) -> None:
    file = tmp_path / "credentials.json"
    server = f"s3://127.0.0.1:{stub.port}"
    choices = {
        "": entry("A"),
        "s3://b2": entry("B"),
        "s3://b2/deep/": entry("C", region="eu-west-3", session_token="test-token"),
        f"{server}/b5": entry("D"),
        f"s3://{stub.url}/b6": entry("E"),
    }
    file.write_text(json.dumps({"s3": choices}))
    keys.setenv("TRITON_CLOUD_CREDENTIAL_PATH", str(file))
    keys.setenv("AWS_ENDPOINT_URL", stub.url)
    urls = (
        "s3://b2/deep/x",
        "s3:///b2//deep",
        "s3://b2/x",
        "s3://b3",
        "s3://b22/x",
        f"{server}/b5/x",
        f"{server}/b6",
        f"s3://{stub.url}/b5",
    )
    assert [signed(asked(storage, stub, url))[0] for url in urls] == [*"CCBAADED"]
    seen = asked(storage, stub, "s3://b2/deep/x")
    assert (signed(seen)[1], seen.headers["x-amz-security-token"]) == ("eu-west-3", "test-token")


def test_a_profile_in_the_credential_file(keys: Environment, stub: Proxy, storage: S3Storage, tmp_path: Path) -> None:
    (tmp_path / "aws").write_text("[p]\naws_access_key_id = of-profile\naws_secret_access_key = s\n")
    keys.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws"))
    (tmp_path / "file").write_text(json.dumps({"s3": {"": {"profile": "p", "region": "eu-west-1"}}}))
    keys.setenv("TRITON_CLOUD_CREDENTIAL_PATH", str(tmp_path / "file"))
    assert signed(asked(storage, stub)) == ("of-profile", "eu-west-1")


@pytest.mark.parametrize(
    "content, told",
    [
        ({"key_id": "k", "secret_key": "test-hushhush", "secretkey": "x"}, "unknown key 'secretkey'"),
        ({"secret_key": "test-hushhush"}, "needs both key_id and secret_key"),
        ({"key_id": 7, "secret_key": "test-hushhush"}, "must map key_id, secret_key"),
        ("test-hushhush", "must map key_id, secret_key"),
    ],
)
def test_a_wrong_entry_is_told_without_its_values(
    keys: Environment, stub: Proxy, storage: S3Storage, tmp_path: Path, content: object, told: str
) -> None:
    (tmp_path / "file").write_text(json.dumps({"s3": {"": content}}))
    keys.setenv("TRITON_CLOUD_CREDENTIAL_PATH", str(tmp_path / "file"))
    with pytest.raises(StorageError, match=told) as caught:
        asked(storage, stub)
    assert "test-hushhush" not in str(caught.value)
    assert "TRITON_CLOUD_CREDENTIAL_PATH" in str(caught.value)


@pytest.mark.parametrize(
    "variable", ["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CA_BUNDLE"]
)
def test_a_file_that_a_variable_names_must_be_there(
    aws: Environment, stub: Proxy, storage: S3Storage, tmp_path: Path, variable: str
) -> None:
    aws.setenv(variable, str(tmp_path / "gone"))
    with pytest.raises(StorageError, match=f"{variable} names .*gone, which cannot be read: No such file"):
        asked(storage, stub)


def test_no_credentials_is_an_error_until_there_are_some(aws: Environment, stub: Proxy, storage: S3Storage) -> None:
    with pytest.raises(StorageError, match=r"no credentials were found.*MOORAGE_S3_ANONYMOUS=true"):
        asked(storage, stub)
    assert not stub.seen
    aws.setenv("AWS_ACCESS_KEY_ID", "later")
    aws.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert signed(asked(storage, stub))[0] == "later"


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])
def test_white_space_around_a_key_is_told(keys: Environment, stub: Proxy, storage: S3Storage, name: str) -> None:
    keys.setenv(name, "test-hushhush\n")
    with pytest.raises(StorageError, match=f"{name} begins or ends with white space") as caught:
        asked(storage, stub)
    assert "hushhush" not in str(caught.value)


def test_a_key_without_its_secret(aws: Environment, stub: Proxy, storage: S3Storage) -> None:
    aws.setenv("AWS_ACCESS_KEY_ID", "k")
    with pytest.raises(StorageError, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together"):
        asked(storage, stub)


def test_a_profile_that_is_not_there(aws: Environment, stub: Proxy, storage: S3Storage) -> None:
    aws.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(StorageError, match=r"nobody.*set AWS_PROFILE"):
        asked(storage, stub)


PROCESS = """
import datetime, json, pathlib, sys
counter = pathlib.Path(sys.argv[1])
number = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(number))
end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=float(sys.argv[2]))
print(json.dumps({"Version": 1, "AccessKeyId": f"key-{number}", "SecretAccessKey": "s", "SessionToken": f"token-{number}",
                  "Expiration": end.isoformat()}))
"""


@pytest.fixture
def process(aws: Environment, tmp_path: Path) -> Callable[[float], None]:
    """Credentials from a program, each good for some seconds."""
    import sys

    def use(seconds: float) -> None:
        (tmp_path / "process.py").write_text(PROCESS)
        command = f"{sys.executable} {tmp_path / 'process.py'} {tmp_path / 'counter'} {seconds}"
        (tmp_path / "config").write_text(f"[default]\ncredential_process = {command}\n")
        aws.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    return use


def test_credentials_that_end_are_renewed(stub: Proxy, storage: S3Storage, process: Callable[[float], None]) -> None:
    process(2)
    first, second = asked(storage, stub), asked(storage, stub)
    assert signed(first)[0] != signed(second)[0]
    assert first.headers["x-amz-security-token"] != second.headers["x-amz-security-token"]


def test_credentials_that_last_are_kept(stub: Proxy, storage: S3Storage, process: Callable[[float], None]) -> None:
    process(7200)
    assert {signed(asked(storage, stub))[0] for _ in range(3)} == {"key-1"}


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied"])
def test_keys_that_are_refused_are_read_anew(
    code: str, aws: Environment, stub: Proxy, storage: S3Storage, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    aws.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text("[default]\naws_access_key_id = old\naws_secret_access_key = s\naws_session_token = t\n")
    assert signed(asked(storage, stub))[0] == "old"
    stub.faults.insert(0, Fault(status=403, body=f"<Error><Code>{code}</Code></Error>".encode()))
    file.write_text("[default]\naws_access_key_id = new\naws_secret_access_key = s\naws_session_token = t\n")
    with pytest.raises(StorageError):
        asked(storage, stub)
    assert signed(asked(storage, stub))[0] == "new"


def test_a_role_for_a_token_of_the_cluster(aws: Environment, stub: Proxy, storage: S3Storage, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("test-web-identity")
    answer = (
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>of-role</AccessKeyId>"
        "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
        "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    )
    with Proxy() as sts:
        sts.faults.append(Fault(status=200, times=ALWAYS, body=answer.encode()))
        for name, value in {
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/models",
            "AWS_ENDPOINT_URL_STS": sts.url,
            "AWS_REGION": "eu-west-1",
        }.items():
            aws.setenv(name, value)
        assert signed(asked(storage, stub)) == ("of-role", "eu-west-1")
        asked(storage, stub)
        assert len(sts.seen) == 1


@pytest.mark.parametrize(
    "name, value",
    [
        ("MOORAGE_S3_ADDRESSING_STYLE", "vritual"),
        ("MOORAGE_S3_ANONYMOUS", "perhaps"),
        ("MOORAGE_S3_TLS_VERIFY", "maybe"),
        ("MOORAGE_S3_CHECK_MD5", "often"),
        ("MOORAGE_S3_CONNECT_TIMEOUT", "soon"),
        ("MOORAGE_S3_READ_TIMEOUT", "0"),
        ("MOORAGE_S3_READ_TIMEOUT", "nan"),
    ],
)
def test_settings_that_cannot_be_meant(keys: Environment, stub: Proxy, storage: S3Storage, name: str, value: str) -> None:
    keys.setenv(name, value)
    with pytest.raises(InvalidArgument, match=f"{name} is '{value}': set it to"):
        asked(storage, stub)


def test_settings_are_read() -> None:
    assert Settings.read({}) == Settings()
    environment = {
        "MOORAGE_S3_ANONYMOUS": "YES",
        "MOORAGE_S3_TLS_VERIFY": "0",
        "MOORAGE_S3_READ_TIMEOUT": "2.5",
        "MOORAGE_S3_CHECK_MD5": "off",
    }
    assert Settings.read(environment) == Settings(anonymous=True, tls_verify=False, check_md5=False, read_timeout=2.5)


def test_nothing_of_a_secret_is_logged_or_shown(
    keys: Environment, stub: Proxy, storage: S3Storage, caplog: pytest.LogCaptureFixture
) -> None:
    keys.setenv("AWS_SECRET_ACCESS_KEY", "test-hushhush")
    keys.setenv("AWS_SESSION_TOKEN", "test-sesame")
    with caplog.at_level("DEBUG"):
        asked(storage, stub)
    shown = f"{caplog.text} {storage!r} {storage.__dict__!r} {[vars(one) for one in [storage]]!r}"
    assert "hushhush" not in shown
    assert "sesame" not in shown
