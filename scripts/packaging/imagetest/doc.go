// Package imagetest tests the images of this repository in a Docker engine: each as its users run
// it, without root, with a read-only root file system, and without any capability. The container
// programs use a local AWS.
//
// Its tests have the build tag "docker": make test-docker starts an engine, builds the images, and
// runs them. The variable TAG is the images' tag.
package imagetest
