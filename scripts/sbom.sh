#!/bin/sh
# Writes software bills of materials in CycloneDX format.
#   scripts/sbom.sh F               writes F/<program>.cdx.json for cutroom and every program of the images,
#                                   F/engine.cdx.json for the engine server's Python packages, and F/c2pa.cdx.json for
#                                   the library that programs load
#   scripts/sbom.sh F IMAGE…        also writes F/<image>.packages.txt, a list of the distribution's packages in each
#                                   image. Docker must have the image
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
out=${1:?a folder for the bills of materials}
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)

work=$PWD/.tools/licenses
mkdir -p "$work"
"$GO" build -C scripts/tools/licenses -o "$work/cyclonedx-gomod" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
for program in cutroom worker media realtime; do
	# Describe the programs as built for Linux, because the images contain them.
	GOOS=linux CGO_ENABLED=0 "$work/cyclonedx-gomod" app -json -licenses -packages=false -std \
		-main "cmd/$program" -output "$out/$program.cdx.json" . 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
done

if [ ! -x "$work/cyclonedx/bin/cyclonedx-py" ]; then
	python3 -m venv "$work/cyclonedx"
	"$work/cyclonedx/bin/pip" install --quiet --disable-pip-version-check --requirement scripts/requirements-sbom.txt
fi
"$work/cyclonedx/bin/cyclonedx-py" requirements --output-reproducible --output-file "$out/engine.cdx.json" gpu/requirements.txt
"$work/cyclonedx/bin/cyclonedx-py" requirements --output-reproducible --output-file "$out/c2pa.cdx.json" scripts/requirements-c2pa.txt

# packages prints the packages that a dpkg folder lists: in one file in a full Debian, and in one file per package in
# a reduced image.
packages() {
	for status in "$1/status" "$1"/status.d/*; do
		[ ! -f "$status" ] || { cat "$status"; echo; }
	done | awk -F ': ' -v OFS='\t' '
		$1 == "Package" { name = $2 }
		$1 == "Version" { version = $2 }
		$1 == "Architecture" { architecture = $2 }
		/^$/ && name != "" { print name, version, architecture; name = "" }' | sort
}

for image in "$@"; do
	name=$(printf %s "$image" | tr '/:' '--')
	rm -rf "$work/image"
	mkdir -p "$work/image"
	# Copy the folder out of the image: most images have no program that could print it.
	container=$(docker create "$image")
	docker cp "$container:/var/lib/dpkg" "$work/image" >/dev/null || { docker rm --volumes "$container" >/dev/null; exit 1; }
	docker rm --volumes "$container" >/dev/null
	packages "$work/image/dpkg" >"$out/$name.packages.txt"
	[ -s "$out/$name.packages.txt" ] || { echo "$image has no package list." >&2; exit 1; }
done
rm -rf "$work/image"
