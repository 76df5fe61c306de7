"""What URLs of Azure Blob Storage mean."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.errors import InvalidArgument
from moorage_azure.urls import PUBLIC_CLOUD, Address, account_of, default_endpoint, parse

PUBLIC = Address("acct", "cont", "p/q")


@pytest.mark.parametrize(
    "url",
    [
        "as://acct/cont/p/q",
        "as://acct/cont/p/q/",
        "as://acct//cont//p///q",
        "as://ACCT/cont/p/q",
        "as://acct.blob.core.windows.net/cont/p/q",
        "as://acct.dfs.core.windows.net/cont/p/q",
        "az://acct.blob.core.windows.net/cont/p/q",
        "abfss://cont@acct.dfs.core.windows.net/p/q",
        "abfs://cont@acct.dfs.core.windows.net/p/q",
        "az://cont@acct.blob.core.windows.net/p/q",
        "abfss://cont@acct/p/q",
        "abfss://acct.dfs.core.windows.net/cont/p/q",
    ],
)
def test_forms_of_the_same(url: str) -> None:
    assert parse(url) == PUBLIC


@pytest.mark.parametrize("url", ["as://acct/cont", "as://acct/cont/", "abfss://cont@acct.dfs.core.windows.net"])
def test_a_container_alone_is_a_repository(url: str) -> None:
    assert parse(url) == Address("acct", "cont", "")


@pytest.mark.parametrize(
    "url, address",
    [
        ("as://acct.blob.core.chinacloudapi.cn/cont", Address("acct", "cont", "", "https://acct.blob.core.chinacloudapi.cn")),
        ("as://acct.dfs.core.usgovcloudapi.net/cont", Address("acct", "cont", "", "https://acct.blob.core.usgovcloudapi.net")),
        ("as://acct.z1.blob.storage.azure.net/cont", Address("acct", "cont", "", "https://acct.z1.blob.storage.azure.net")),
        (
            "as://acct.privatelink.blob.core.windows.net/cont",
            Address("acct", "cont", "", "https://acct.privatelink.blob.core.windows.net"),
        ),
        (
            "as://acct-secondary.blob.core.windows.net/cont",
            Address("acct", "cont", "", "https://acct-secondary.blob.core.windows.net"),
        ),
        (
            "as://https://acct.blob.core.windows.net/cont/p",
            Address("acct", "cont", "p", "https://acct.blob.core.windows.net", explicit=True),
        ),
        (
            "as://http://azurite:10000/devstoreaccount1/cont/p",
            Address("devstoreaccount1", "cont", "p", "http://azurite:10000/devstoreaccount1", explicit=True),
        ),
        (
            "as://127.0.0.1:10000/devstoreaccount1/cont",
            Address("devstoreaccount1", "cont", "", "http://127.0.0.1:10000/devstoreaccount1", explicit=True),
        ),
        (
            "as://[::1]:10000/devstoreaccount1/cont",
            Address("devstoreaccount1", "cont", "", "http://[::1]:10000/devstoreaccount1", explicit=True),
        ),
        ("as://localhost/acct/cont", Address("acct", "cont", "", "http://localhost/acct", explicit=True)),
        (
            "as://acct.blob.localhost:10000/cont",
            Address("acct", "cont", "", "http://acct.blob.localhost:10000", explicit=True),
        ),
        ("as://models.example.com/cont/p", Address("", "cont", "p", "https://models.example.com", explicit=True)),
        ("as://devstoreaccount1/cont", Address("devstoreaccount1", "cont", "")),
        ("az://cont/p/q", Address("", "cont", "p/q")),
        ("abfs://cont", Address("", "cont", "")),
        ("as://acct/$web/p", Address("acct", "$web", "p")),
        ("as://acct/a-b/p", Address("acct", "a-b", "p")),
        ("as://acct/cont/date=2024-01-01/my repo/ü#1/50%", Address("acct", "cont", "date=2024-01-01/my repo/ü#1/50%")),
    ],
)
def test_other_places(url: str, address: Address) -> None:
    assert parse(url) == address


@pytest.mark.parametrize(
    "url, told",
    [
        ("as://acct", "understood: account 'acct', no container; write as://acct/CONTAINER/path"),
        ("as://acct/", "no container"),
        ("as://acct.blob.core.windows.net", "no container; write as://acct/CONTAINER"),
        ("as:///cont/p", "account '', which cannot be one"),
        ("as://my_acct/cont", "account 'my_acct', which cannot be one"),
        ("as://ac/cont", "3 to 24 letters and digits"),
        ("as://acct/Cont", "container 'Cont', which cannot be one"),
        ("as://acct/a--b", "container 'a--b'"),
        ("as://acct/ab", "container 'ab'"),
        ("as://acct/" + "a" * 64, "3 to 63"),
        ("as://acct/cont/../other", "no '.' or '..' parts"),
        ("as://acct/cont/./p", "no '.' or '..' parts"),
        ("as://acct.file.core.windows.net/share", "the account's file service; models are read from its blobs: as://acct/"),
        ("as://localhost:10000", "no account; write as://HOST:PORT/ACCOUNT/CONTAINER"),
        ("as://localhost:port/acct/cont", "'localhost:port' is no host"),
        ("as://[::1/acct/cont", "is no host"),
        ("abfss://@acct.dfs.core.windows.net/p", "no container"),
        ("abfss://cont@/p", "account ''"),
    ],
)
def test_what_cannot_be_meant_says_what_to_write(url: str, told: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(told)) as caught:
        parse(url)
    assert url in str(caught.value)


def test_a_token_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidArgument, match="AZURE_STORAGE_SAS_TOKEN") as caught:
        parse("as://acct/cont/p?sv=2024-01-01&sig=c2VjcmV0")
    assert "c2VjcmV0" not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint, account",
    [
        ("https://acct.blob.core.windows.net", "acct"),
        ("https://Acct-secondary.blob.core.windows.net/", "acct"),
        ("http://127.0.0.1:10000/devstoreaccount1", "devstoreaccount1"),
        ("https://models.example.com", ""),
        ("", ""),
    ],
)
def test_whose_an_endpoint_is(endpoint: str, account: str) -> None:
    assert account_of(endpoint) == account


ACCOUNTS = st.from_regex(r"[a-z0-9]{3,24}", fullmatch=True)
CONTAINERS = st.from_regex(r"[a-z0-9](-?[a-z0-9]){1,30}", fullmatch=True).filter(lambda name: len(name) >= 3)
PARTS = st.text(st.characters(exclude_characters="/?", exclude_categories=("Cs", "Cc")), min_size=1).filter(
    lambda part: part not in (".", "..")
)


@given(ACCOUNTS, CONTAINERS, st.lists(PARTS, max_size=4), st.sampled_from(["/", "//"]))
def test_all_forms_say_the_same(account: str, container: str, parts: list[str], slash: str) -> None:
    path = "".join(slash + part for part in parts)
    expected = Address(account, container, "/".join(parts))
    assert parse(f"as://{account}/{container}{path}") == expected
    assert parse(f"as://{account}.blob.{PUBLIC_CLOUD}{slash}{container}{path}") == expected
    assert parse(f"abfss://{container}@{account}.dfs.{PUBLIC_CLOUD}{path}") == expected
    assert parse(expected.canonical) == expected
    assert parse(f"az://{container}{path}") == Address("", container, "/".join(parts))


@given(st.text(max_size=60), st.sampled_from(["as", "az", "abfs", "abfss"]))
def test_any_text_is_understood_or_refused(text: str, scheme: str) -> None:
    try:
        address = parse(f"{scheme}://{text}")
    except InvalidArgument:
        return
    assert address.container
    assert not address.prefix.startswith("/") and not address.prefix.endswith("/")
    assert "//" not in address.prefix and ".." not in address.prefix.split("/")
    assert parse(f"{scheme}://{text}/") == address


@given(ACCOUNTS)
def test_the_account_of_its_endpoint_is_the_account(account: str) -> None:
    assert account_of(default_endpoint(account)) == account
