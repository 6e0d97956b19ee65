package sqlite_test

import (
	"testing"

	"cutroom/shared/domain/file/filetest"
)

func TestFilesConform(t *testing.T) {
	filetest.Run(t, func(t *testing.T) filetest.Harness {
		files := open(t).Files()
		return filetest.Harness{Store: files, Retention: files}
	})
}
