// Package theme contains the common style of all pages.
package theme

import _ "embed"

//go:embed theme.css
var css string

func CSS() string { return css }
