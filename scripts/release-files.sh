#!/bin/sh
# release-files.sh FOLDER: creates all files of a release except the programs. FOLDER/share has the files that
# archives contain next to the program, FOLDER/SYSTEM_ARCHITECTURE the C2PA library, FOLDER/sbom the SBOMs,
# FOLDER/clients the client packages; FOLDER/install.sh is the installer, and FOLDER/compose.yaml runs the released
# image without a checkout. RELEASES is the URL of the releases, which install.sh uses, and IMAGES the prefix of the
# images' names.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
folder=$(cd "$1" && pwd -P)
GO=${GO:-go}

rm -rf "$folder/share"
mkdir -p "$folder/share/man" "$folder/share/completions" "$folder/share/docs/contract"
cp LICENSE README.md CHANGELOG.md scripts/packaging/cutroom.service scripts/packaging/com.cutroom.server.plist "$folder/share/"
cp docs/*.md docs/*.png docs/*.webp docs/third-party.tsv "$folder/share/docs/"
cp docs/contract/*.md "$folder/share/docs/contract/"
program=$folder/cutroom
CGO_ENABLED=0 "$GO" build -o "$program" ./cmd/cutroom
"$program" --man | gzip -9n >"$folder/share/man/cutroom.1.gz"
for shell in bash zsh fish; do
	# The completion script contains the program's path on this machine. Replace it with the name.
	"$program" completion "$shell" | sed "s|$program|cutroom|g" >"$folder/share/completions/cutroom.$shell"
done
rm "$program"
scripts/module-licenses.sh "$folder/share/licenses"

for system in Linux Darwin; do
	for architecture in amd64 arm64; do
		name=$(echo "$system" | tr '[:upper:]' '[:lower:]')_$architecture
		scripts/install-c2pa.sh "$folder/$name" "$architecture" "$system"
	done
done

scripts/sbom.sh "$folder/sbom"
scripts/clients.sh "$folder/clients"
releases=${RELEASES:-https://example.com/cutroom/releases}
sed "s|^releases=.*|releases=\${RELEASES:-$releases}|" scripts/packaging/install.sh >"$folder/install.sh"

# The catalog is in the image.
version=$(git describe --tags --always | sed 's/^v//')
image=$(echo "${IMAGES:-example.com/cutroom}" | tr '[:upper:]' '[:lower:]')/cutroom:$version
sed -e "s|:-cutroom:latest}|:-$image}|" -e '/catalog.yaml:ro/d' \
	-e '/make images IMAGES=server/d' -e '/^    build: /d' -e '/Compose builds it/d' compose.yaml >"$folder/compose.yaml"
