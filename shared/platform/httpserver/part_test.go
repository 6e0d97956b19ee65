package httpserver_test

import (
	"mime/multipart"
	"strings"
	"testing"

	"cutroom/shared/platform/httpserver"
)

func TestPartNamesAreParsed(t *testing.T) {
	for disposition, want := range map[string]string{
		`form-data; name="data"; filename="a%22b.png"`:    `a"b.png`,
		`form-data; name="data"; filename=Übung.png`:      "Übung.png",
		`form-data; name=data; filename=Übung foto.png`:   "Übung foto.png",
		`form-data; name="data"; filename="Übung; 1.png"`: "Übung; 1.png",
		`form-data; name="data"; filename=plain.png`:      "plain.png",
	} {
		body := "--b\r\nContent-Disposition: " + disposition + "\r\n\r\nx\r\n--b--\r\n"
		part, err := multipart.NewReader(strings.NewReader(body), "b").NextPart()
		if err != nil {
			t.Fatal(err)
		}
		if name, file := httpserver.PartName(part), httpserver.PartFile(part); name != "data" || file != want {
			t.Errorf("%s: the name is %q, the file %q; want %q", disposition, name, file, want)
		}
	}
}
