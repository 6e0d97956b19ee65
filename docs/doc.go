// Package docs checks that every citation of a page, in code and in other
// pages, leads to a page and a heading that exist.
package docs
