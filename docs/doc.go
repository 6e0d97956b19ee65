// Package docs checks that references to pages, in code and in other pages, point to an existing heading.
package docs
