// Package pictures has a picture of every look, rendered in advance from NASA's public-domain
// portrait of the astronaut Eileen Collins.
package pictures

import (
	"embed"
	"fmt"
	"strings"

	"cutroom/shared/domain/catalog"
)

//go:generate go test -run TestPicturesAreUpToDate -update .

//go:embed *.jpg
var files embed.FS

var Size = catalog.Size{Width: 192, Height: 108}

// Original is the name of the unedited photograph.
const Original = "original"

// Of returns the JPEG for a look's name, or for [Original].
func Of(name string) ([]byte, error) {
	content, err := files.ReadFile(File(name))
	if err != nil {
		return nil, fmt.Errorf("pictures: the look %q: %w", name, err)
	}
	return content, nil
}

func File(name string) string { return strings.ReplaceAll(name, " ", "-") + ".jpg" }
