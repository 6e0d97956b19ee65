// Package imagetest tests this repository's images in a Docker engine. It runs each image as its users do: without
// root, with a read-only root file system, and without any capability. The container programs use a local AWS.
//
// Its tests have the build tag "docker": make test-docker starts an engine, builds the images, and
// runs them. The variable TAG is the images' tag.
package imagetest
