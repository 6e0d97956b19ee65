// Package docs checks that citations of pages, in code and in other pages, lead to an existing
// heading.
package docs
