package httpserver

import (
	"mime/multipart"
	"regexp"
	"strings"
)

var bareName = regexp.MustCompile(`(?i)(;\s*(?:file)?name=)([^";\s][^";]*)`)

// PartName is like FormName, but also accepts unquoted non-ASCII names, as sent by scripts.
func PartName(part *multipart.Part) string {
	const key = "Content-Disposition"
	header := part.Header.Get(key)
	if strings.ContainsFunc(header, func(r rune) bool { return r > 127 }) {
		part.Header.Set(key, bareName.ReplaceAllString(header, `$1"$2"`))
	}
	return part.FormName()
}

// unescapes decodes browsers' escapes in file names (HTML, multipart/form-data).
var unescapes = strings.NewReplacer("%22", `"`, "%0D", "\r", "%0A", "\n")

// PartFile returns a part's file name. PartName must be called first.
func PartFile(part *multipart.Part) string { return unescapes.Replace(part.FileName()) }
