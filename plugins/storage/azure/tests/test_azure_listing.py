"""What is read from a page of a listing."""

from __future__ import annotations

import base64
import hashlib
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_azure.listing import blobs

SUM = hashlib.md5(b"x").digest()
USUAL = f"<Etag>0x8D1</Etag><Content-Length>7</Content-Length><Content-MD5>{base64.b64encode(SUM).decode()}</Content-MD5>"
BLOCK = "<BlobType>BlockBlob</BlobType>"


def page(*found: str) -> bytes:
    answer = f"<EnumerationResults><Prefix>p</Prefix><Blobs>{''.join(found)}</Blobs><NextMarker /></EnumerationResults>"
    return f'<?xml version="1.0" encoding="utf-8"?>{answer}'.encode()


def blob(properties: str = USUAL + BLOCK, name: str = "<Name>m/1/x</Name>", more: str = "") -> bytes:
    return page(f"<Blob>{name}<Properties>{properties}</Properties>{more}</Blob>")


def test_the_usual() -> None:
    info = {"size": 7, "type": "file", "etag": "0x8D1", "archived": False, "md5": SUM.hex()}
    assert list(blobs(blob())) == [("m/1/x", info)]


def test_an_empty_page() -> None:
    assert list(blobs(page())) == []


@pytest.mark.parametrize(
    "properties, more",
    [
        (f"{USUAL}<ResourceType>directory</ResourceType>", "<Metadata />"),
        (USUAL + BLOCK, "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata>"),
        (USUAL + BLOCK, "<Metadata><owner>x</owner><Hdi_isfolder>true</Hdi_isfolder></Metadata>"),
    ],
)
def test_directories(properties: str, more: str) -> None:
    ((_, info),) = blobs(blob(properties, more=more))
    assert info["type"] == "directory"


@pytest.mark.parametrize("more", ["", "<Metadata />", "<Metadata><hdi_isfolder>false</hdi_isfolder></Metadata>"])
def test_files(more: str) -> None:
    ((_, info),) = blobs(blob(f"{USUAL}{BLOCK}<ResourceType>file</ResourceType>", more=more))
    assert info["type"] == "file"


@pytest.mark.parametrize(
    "properties",
    [
        f"{USUAL}<BlobType>AppendBlob</BlobType>",
        f"<Content-MD5 />{BLOCK}",
        f"<Content-MD5>no sum!</Content-MD5>{BLOCK}",
        f"<Content-MD5>YQ==</Content-MD5>{BLOCK}",
        BLOCK,
    ],
)
def test_no_sum_is_better_than_a_doubtful_one(properties: str) -> None:
    ((_, info),) = blobs(blob(properties))
    assert info["md5"] == ""


def test_names_that_xml_cannot_hold_are_decoded() -> None:
    ((name, _),) = blobs(blob(name='<Name Encoded="true">m/1/a%EF%BF%BEb%25</Name>'))
    assert name == "m/1/a\ufffeb%"


@given(st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), min_size=1))
def test_other_names_stand_for_themselves(name: str) -> None:
    ((found, _),) = blobs(blob(name=f"<Name>{escape(name)}</Name>"))
    assert found == name
