// Package theme contains the style sheet shared by all pages.
package theme

import _ "embed"

//go:embed theme.css
var css string

func CSS() string { return css }
