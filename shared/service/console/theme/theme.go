// Package theme contains the common style of all pages: the colours for the light and the dark
// scheme, fonts and controls.
package theme

import _ "embed"

//go:embed theme.css
var css string

// CSS returns the style sheet to include before a page's own.
func CSS() string { return css }
