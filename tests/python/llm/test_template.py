# SPDX-License-Identifier: Apache-2.0
"""Chat templates are hostile: what they may not do ends with an error, soon."""

import time

import pytest

pytest.importorskip("jinja2")

from tenon.llm import ChatTemplate, TemplateError

CHAT = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m['content'] | trim }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def test_messages_become_a_prompt():
    template = ChatTemplate(CHAT, {"bos_token": "<s>"})
    messages = [{"role": "user", "content": " hello "}]
    assert template.render(messages) == "<s><user>hello\n<assistant>"
    assert template.render(messages, add_generation_prompt=False) == "<s><user>hello\n"


def test_usual_constructs_work():
    text = (
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}"
        "{{ ns.n ~ '/' ~ (messages | length) }} {{ 'a-b'.split('-')[1] + 'c' }} "
        "{{ {'x': 'é<'} | tojson }} {{ 'aa'.replace('a', 'b') }} {{ ['x', 'y'] | join(',') }} {{ 7 % 4 }}"
    )
    assert ChatTemplate(text).render([{}, {}]) == '2/2 bc {"x": "é<"} bb x,y 3'


@pytest.mark.parametrize(
    "text, message",
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "within"),
        ("{% for a in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaa' }}{% endfor %}", "at most 1048576"),
        ("{{ 'a' * 10**9 }}", "numbers up to 2"),
        ("{{ 'a'.ljust(10**9) }}", "'ljust' of a text is not known"),
        ("{{ '{:>1000000000}'.format(1) }}", "not known here"),
        ("{{ '%1000000000d' % 1 }}", "numbers up to 2"),
        ("{{ {} | tojson(indent=10**9) }}", "indent up to 16"),
        ("{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}"
         "{% endfor %}", "at most 1048576"),
        ("{% set n = namespace(x='aa') %}{% for i in range(99) %}"
         "{% set n.x = n.x.replace('a', 'aaa') %}{% endfor %}", "at most 1048576"),
        ("{% set x %}{% for i in range(9999) %}" + "a" * 200 + "{% endfor %}{% endset %}",
         "at most 1048576"),
        ("{{ range(99999) | join('aaaaaaaaaaaaaaaaaaaaaaaa') }}", "at most 1048576"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
    ],
)  # fmt: skip
def test_hostile_templates_end_with_an_error(text, message):
    start = time.thread_time()
    with pytest.raises(TemplateError, match=message):
        ChatTemplate(text).render([])
    assert time.thread_time() - start < 5


def test_brackets_to_the_end_of_the_stack():
    with pytest.raises(TemplateError, match="chat template: RecursionError"):
        ChatTemplate("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}")


@pytest.mark.parametrize("text", ["{{ 'a' | center(10**10) }}", "{% for %}", "{{ lipsum( }}"])
def test_unknown_filters_and_syntax_name_the_line(text):
    with pytest.raises(TemplateError, match="chat template, line 1"):
        ChatTemplate(text)
