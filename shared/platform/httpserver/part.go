package httpserver

import (
	"mime/multipart"
	"regexp"
	"strings"
)

var bareName = regexp.MustCompile(`(?i)(;\s*(?:file)?name=)([^";\s][^";]*)`)

// Unlike FormName, PartName accepts unquoted non-ASCII names, as scripts write them.
func PartName(part *multipart.Part) string {
	const key = "Content-Disposition"
	header := part.Header.Get(key)
	if strings.ContainsFunc(header, func(r rune) bool { return r > 127 }) {
		part.Header.Set(key, bareName.ReplaceAllString(header, `$1"$2"`))
	}
	return part.FormName()
}

// unescapes decodes the escapes of browsers in file names (HTML, multipart/form-data).
var unescapes = strings.NewReplacer("%22", `"`, "%0D", "\r", "%0A", "\n")

// PartName must have been called before.
func PartFile(part *multipart.Part) string { return unescapes.Replace(part.FileName()) }
