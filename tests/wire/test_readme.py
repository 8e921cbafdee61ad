"""README.md holds: its Python snippet is run from the page itself."""

import re
from pathlib import Path

from harness import stubs

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
assert stubs.pb, "importing it makes leasehold.v1 importable, as the page's snippet needs"


def test_the_first_job_of_the_readme_goes_its_whole_way_and_so_does_its_reservation(brokers, capsys):
    snippets = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
    assert len(snippets) == 2 and all("127.0.0.1:7070" in snippet for snippet in snippets), "the default address"
    broker, names = brokers(), {}
    for snippet, printed in zip(snippets, ["b'hello' attempt 1\n", "8 on hand, 0 held\n"]):
        exec(compile(snippet.replace("127.0.0.1:7070", f"127.0.0.1:{broker.port}"), "README.md", "exec"), names)
        assert capsys.readouterr().out == printed
