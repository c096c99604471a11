import pytest


def test_a_setting_is_set_and_read_back(fila):
    result = fila("config", "set", "limits.a", "10,20")
    assert (result.code, result.out) == (0, 'Set "limits.a" = "10,20"\n')
    result = fila("config", "get", "limits.a")
    assert (result.code, result.out) == (0, "limits.a: 10,20\n")


def test_an_unknown_setting_is_not_set(fila):
    result = fila("config", "get", "nothing.here")
    assert (result.code, result.out) == (1, "nothing.here: (not set)\n")


def test_an_empty_value_removes_a_setting(fila):
    fila("config", "set", "gone", "1")
    assert fila("config", "set", "gone", "").out == 'Removed "gone"\n'
    assert fila("config", "get", "gone").out == "gone: (not set)\n"


def test_settings_are_listed_by_prefix(fila):
    for key, value in (("feature:b", "2"), ("feature:a", "1"), ("other", "3")):
        fila("config", "set", key, value)
    assert fila("config", "list", "--prefix", "feature:").out == "feature:a: 1\nfeature:b: 2\n"
    assert "other: 3\n" in fila("config", "list").out
    assert fila("config", "list", "--prefix", "zzz").out == "No settings found.\n"


def test_settings_as_json(fila):
    assert fila("config", "set", "j:k", "v", "--json").document == {"key": "j:k", "value": "v"}
    assert fila("config", "get", "j:k", "--json").document == {"key": "j:k", "value": "v"}
    assert fila("config", "get", "j:x", "--json").document == {"key": "j:x", "value": None}
    assert fila("config", "list", "--prefix", "j:", "--json").document == {
        "entries": [{"key": "j:k", "value": "v"}]
    }


def test_a_value_that_makes_no_sense_is_refused_with_the_reason(fila):
    result = fila("config", "set", "throttle.api", "fast")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: ") and "throttle.api" in result.err
    assert fila("config", "get", "throttle.api").out == "throttle.api: (not set)\n"


def test_control_characters_of_a_value_are_shown_escaped(fila):
    fila("config", "set", "banner", "\x1b[2J")
    assert fila("config", "get", "banner").out == "banner: \\x1b[2J\n"
    assert fila("config", "get", "banner", "--json").document["value"] == "\x1b[2J"


@pytest.mark.parametrize(
    ("key", "family"),
    [("throtle.stripe", "throttle."), ("trottle:stripe:rate", "throttle:"), ("lau:q:x", "lua:")],
)
def test_a_setting_with_nearly_the_name_of_one_that_the_broker_reads_is_remarked_on(
    fila, key, family
):
    result = fila("config", "set", key, "5")
    assert result.code == 0 and f"begin with {family};" in result.err
    fila("config", "set", key, "")


@pytest.mark.parametrize("key", ["hook.fine", "max_retries", "feature:flow"])
def test_other_settings_are_taken_as_they_are(fila, key):
    assert fila("config", "set", key, "5").err == ""
    fila("config", "set", key, "")
