package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
)

func (s *Invocation) Print(value any) error { return printJSON(s.Out, value) }

// printJSON writes a value as one line of JSON without terminal control characters.
func printJSON(out io.Writer, value any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(out, escaped(text.String()))
	return err
}

// escaped escapes terminal control characters in JSON. encoding/json escapes only characters below U+0020.
func escaped(text string) string {
	if strings.IndexFunc(text, acts) < 0 {
		return text
	}
	var safe strings.Builder
	for _, r := range text {
		if r != '\n' && acts(r) {
			fmt.Fprintf(&safe, `\u%04x`, r)
		} else {
			safe.WriteRune(r)
		}
	}
	return safe.String()
}

// acts reports whether a character can affect a terminal. This includes control characters, line and paragraph
// separators, and characters that change the text direction and so could disguise text.
func acts(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// list prints items as rows of a table or as lines of JSON.
type list struct {
	invocation *Invocation
	table      *tabwriter.Writer
}

// newList returns a list. Its table has a header even if it has no rows.
func (s *Invocation) newList(columns ...string) *list {
	l := &list{invocation: s, table: tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)}
	if !s.JSON {
		_ = l.row(columns) // flush reports errors
	}
	return l
}

// add prints an item, as its JSON value or as cells of the table.
func (l *list) add(value any, cells ...string) error {
	if l.invocation.JSON {
		return l.invocation.Print(value)
	}
	return l.row(cells)
}

func (l *list) row(cells []string) error {
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	_, err := fmt.Fprintln(l.table, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	return err
}

func (l *list) end() error { return l.table.Flush() }

// printable removes characters that affect a terminal or break a table, because file names and
// messages come from untrusted sources.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if acts(r) {
			return ' '
		}
		return r
	}, text)
}

func (s *Invocation) printPath(path string) error {
	_, err := fmt.Fprintln(s.Out, path)
	return err
}

// local formats a time in the local time zone. It formats nil as "-".
func local(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func size(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) }

func (s *Invocation) printLine(text string) error {
	_, err := fmt.Fprintln(s.Out, printable(text))
	return err
}
