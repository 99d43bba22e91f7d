"""The examples that the specs print: by what they promise, and by what is built."""

from __future__ import annotations

import pytest
from jsonschema_rs import Draft202012Validator

from quantdeck import servers
from tests.spec.notation import by_words, shape
from tests.spec.promised import SPECS, event_result, examples, promises, raw

EXAMPLES = [(spec, *example) for spec in SPECS for example in examples(spec)]
CALLS = [(spec, tool, arguments) for spec, tool, arguments, _ in EXAMPLES if arguments is not None]
RESULTS = [(spec, tool, result) for spec, tool, _, result in EXAMPLES if result is not None]


@pytest.mark.parametrize("spec", SPECS)
def test_what_a_spec_promises_can_be_read_as_schemas(spec):
    assert promises(spec).tools
    for tool in raw(spec)["tools"]:
        Draft202012Validator(tool["input_schema"])


@pytest.mark.parametrize("spec, tool, arguments", CALLS)
def test_an_example_call_fits_the_promised_schema_and_the_built_one(spec, tool, arguments):
    promised = next(entry for entry in raw(spec)["tools"] if entry["name"] == tool)["input_schema"]
    built = [
        contract.input_schema
        for name in servers.NAMES
        for contract in servers.load(name).tools
        if contract.name == tool
    ]
    validators = [Draft202012Validator(schema, validate_formats=True) for schema in (promised, *built)]
    for validator in validators:
        validator.validate(arguments)


@pytest.mark.parametrize("spec, tool, result", RESULTS)
def test_an_example_result_fits_the_promised_schema(spec, tool, result):
    entry = next(entry for entry in raw(spec)["tools"] if entry["name"] == tool)
    schema = event_result(entry["result"], raw(spec)) if "result" in entry else entry["output_schema"]
    Draft202012Validator(schema, validate_formats=True).validate(result)


def test_words_are_read_as_the_spec_means_them():
    schema = by_words({"price": "decimal | null", "side": "Buy | Sell", "legs": ["array of Leg"]}, {"Leg": "integer"})
    assert schema["properties"] == {
        "price": {"type": ["number", "null"]},
        "side": {"type": "string", "enum": ["Buy", "Sell"]},
        "legs": {"type": "array", "items": {"type": "integer"}},
    }


def test_a_notation_that_nobody_knows_is_an_error():
    with pytest.raises(ValueError, match="no such notation"):
        by_words("a long integer", {})


def test_samples_are_joined_into_one_shape():
    samples = ({"left": 1.5, "details": {"a": 1}}, {"left": None, "details": None})
    assert shape(*samples, opaque={"details"}) == {"left": "number|null", "details": "object|null"}
