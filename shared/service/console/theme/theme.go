// Package theme is the common style of all pages: colours of the light and the dark scheme, type,
// and controls.
package theme

import _ "embed"

//go:embed theme.css
var css string

// CSS returns the style sheet to put before a page's own.
func CSS() string { return css }
