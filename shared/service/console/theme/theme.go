// Package theme is the look that all pages for people share: colours of the light
// and the dark scheme, type, and the form of controls.
package theme

import _ "embed"

//go:embed theme.css
var css string

// CSS is the style sheet that stands before a page's own.
func CSS() string { return css }
