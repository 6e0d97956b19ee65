package vp8

import (
	"runtime"
	"testing"
)

func TestPackageToInstallIsNamed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems use one name")
	}
	for release, want := range map[string]string{
		"ID=debian\nVERSION_CODENAME=bookworm\n": "libvpx7", "VERSION_CODENAME=trixie": "libvpx9",
		"ID=ubuntu\nVERSION_CODENAME=\"noble\"\n": "libvpx9", "ID=fedora\n": "libvpx", "": "libvpx",
	} {
		if got := packageOf(func(string) ([]byte, error) { return []byte(release), nil }); got != want {
			t.Errorf("%q: %s, want %s", release, got, want)
		}
	}
}
