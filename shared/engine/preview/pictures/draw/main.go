// Program draw writes the pictures of package pictures to the current folder.
package main

import (
	_ "embed"
	"fmt"
	"os"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/engine/preview/look"
)

//go:embed sample.jpg
var sample []byte

func main() {
	if err := draw(); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

func draw() error {
	for _, name := range append(look.Names(), "original") {
		prompt := name
		if name == "original" {
			prompt = ""
		}
		// Package pictures defines the same size and file names, but cannot be compiled before the files exist.
		picture, err := frame.Sample(sample, prompt, catalog.Size{Width: 192, Height: 108})
		if err != nil {
			return err
		}
		if err := os.WriteFile(file(name), picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func file(name string) string {
	text := []byte(name + ".jpg")
	for i, b := range text {
		if b == ' ' {
			text[i] = '-'
		}
	}
	return string(text)
}
