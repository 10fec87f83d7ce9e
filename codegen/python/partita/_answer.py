"""What verbs answer, as plain data that prints as a table."""

import html


class Answer:
    """`data` is the verb's JSON, `folder` holds the files, `differs` is what exit code 1 says, `rows` are the table."""

    def __init__(self, title, data, folder, differs, columns, rows):
        self.title, self.data, self.folder, self.differs = title, data, folder, differs
        self.columns, self.rows = columns, rows

    def __repr__(self):
        cells = [self.columns, *[[str(c) for c in row] for row in self.rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
        return "\n".join([self.title, *lines, f"files: {self.folder}"])

    def _repr_html_(self):
        def row(cells, kind):
            return "<tr>" + "".join(f"<{kind}>{html.escape(str(c))}</{kind}>" for c in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self.rows)
        return (f"<p>{html.escape(self.title)}</p><table>{row(self.columns, 'th')}{body}</table>"
                f"<p>files: {html.escape(str(self.folder))}</p>")


class Page:
    """An HTML page that needs no network, shown in a notebook."""

    def __init__(self, path, height=700):
        self.path, self.height = path, height

    def __repr__(self):
        return f"Page({str(self.path)!r})"

    def _repr_html_(self):
        text = self.path.read_text(encoding="utf-8")
        # The page's own program runs, without access to the notebook around it.
        return (f'<iframe srcdoc="{html.escape(text, quote=True)}" sandbox="allow-scripts" width="100%" '
                f'height="{int(self.height)}" style="border:0"></iframe>')
