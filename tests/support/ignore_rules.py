"""Cases of `.hubignore`, which the shell client and imports read alike."""

# The files of a folder.
NAMES = ("a.txt", "d/a.txt", "d/e/b.pyc", "d/e/f.txt", "x b.md", "b+c.md")
# Rules, and the files that they leave in the folder.
RULES: list[tuple[str, set[str]]] = [
    ("", {"a.txt", "d/a.txt", "d/e/b.pyc", "d/e/f.txt", "x b.md", "b+c.md"}),
    ("# comment\n\n*.pyc\r\nx b.md  \n", {"a.txt", "d/a.txt", "d/e/f.txt", "b+c.md"}),
    ("/a.txt\n", {"d/a.txt", "d/e/b.pyc", "d/e/f.txt", "x b.md", "b+c.md"}),
    ("a.txt/\ne/\n", {"a.txt", "d/a.txt", "x b.md", "b+c.md"}),
    ("d/*.txt\n", {"a.txt", "d/e/b.pyc", "d/e/f.txt", "x b.md", "b+c.md"}),
    ("?.txt\nb+c.md", {"d/e/b.pyc", "x b.md"}),
    ("*\n!d\n!*.txt\n", {"a.txt", "d/a.txt"}),
    ("d\n!d/a.txt\n", {"a.txt", "x b.md", "b+c.md"}),
    ("*\n", set()),
    ("*.*x*t\n/*/*/*.*y*\nx*\n", {"b+c.md"}),
]
