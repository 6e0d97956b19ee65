#!/bin/sh
# build-ffmpeg.sh FOLDER [ARCHITECTURE]: builds ffmpeg and ffprobe from Debian's patched sources, and puts them into
# an image's root folder, together with the libraries that they need and the sources. It adds libvpx for live video,
# and heif-convert for HEIC and AVIF. It must run as root in a Debian container. ARCHITECTURE is Debian's name, such as
# arm64. For another architecture it cross-compiles, without emulation.
#
# Debian's own build needs 210 libraries, mostly for displays, speech, CDs and other hardware. This build can only read
# the formats that the service accepts and write its results, because code that is not there cannot be attacked. Its
# decoders cover the codecs of cameras, phones, editors and the web in the accepted containers.
set -eu
out=$1
here=$(dpkg --print-architecture)
architecture=${2:-$here}
export DEBIAN_FRONTEND=noninteractive

filters=afade,afftdn,aformat,alimiter,alphaextract,alphamerge,anull,apad,aresample,areverse,aselect,asetpts,asplit,atempo,atrim,avgblur
filters=$filters,bilateral,blend,bwdif,color,concat,crop,deflicker,deshake,displace,drawbox,extractplanes,fade,format,fps,gblur,hflip
filters=$filters,hqdn3d,hstack,loop,loudnorm,lut,lut2,lut3d,lutrgb,lutyuv,maskedmerge,median,mergeplanes,minterpolate,negate,null
filters=$filters,nullsink,overlay,pad,perspective,pixelize,removegrain,rgbashift,rotate,scale,select,setparams,setpts,setsar,settb,sidedata,split
filters=$filters,tonemap,tpad,transpose,trim,vflip,volume,vstack,xfade,zscale
demuxers=mov,matroska,avi,mpegts,ogg,flv,gif,rawvideo,image2,image2pipe,image_png_pipe,image_jpeg_pipe,image_webp_pipe
demuxers=$demuxers,image_bmp_pipe,image_tiff_pipe
muxers=mp4,mov,rawvideo,image2,image2pipe,null
decoders=h264,hevc,libdav1d,vp8,vp9,libvpx_vp8,libvpx_vp9,vp6,vp6a,vp6f,mpeg1video,mpeg2video,mpeg4,msmpeg4v1,msmpeg4v2,msmpeg4v3,h263,h263p,flv
decoders=$decoders,theora,mjpeg,prores,dnxhd,cfhd,dvvideo,ffv1,huffyuv,ffvhuff,utvideo,magicyuv,qtrle,rpza,svq1,svq3,cinepak
decoders=$decoders,wmv1,wmv2,wmv3,vc1,msvideo1,msrle,flashsv,flashsv2,rawvideo,v210,gif,png,apng,webp,bmp,tiff,jpeg2000
decoders=$decoders,aac,aac_latm,ac3,eac3,dca,truehd,mp1float,mp2float,mp3float,mp3,opus,vorbis,flac,alac,wmav1,wmav2,amrnb,amrwb
decoders=$decoders,speex,nellymoser,qdm2,gsm,pcm_u8,pcm_s8,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,pcm_f32le
decoders=$decoders,pcm_f32be,pcm_f64le,pcm_f64be,pcm_alaw,pcm_mulaw,pcm_bluray,adpcm_ima_qt,adpcm_ima_wav,adpcm_ms,adpcm_swf
encoders=libx264,aac,png,mjpeg,pam,rawvideo,wrapped_avframe,pcm_s16le

[ "$architecture" = "$here" ] || dpkg --add-architecture "$architecture"
# Fetch the sources from the mirrors from which the image gets its packages.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
	case $list in
	*.list) [ ! -f "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >"/etc/apt/sources.list.d/source-$(basename "$list")" ;;
	*.sources) sed 's/^Types: deb$/Types: deb-src/' "$list" >"/etc/apt/sources.list.d/source-$(basename "$list")" ;;
	esac
done
apt-get update
apt-get install -y --no-install-recommends dpkg-dev make nasm pkg-config libc6-dev

set --
compiler='gcc g++'
if [ "$architecture" != "$here" ]; then
	gnu=$(dpkg-architecture -a"$architecture" -qDEB_HOST_GNU_TYPE 2>/dev/null)
	compiler="gcc-$gnu g++-$gnu"
	set -- --enable-cross-compile "--cross-prefix=$gnu-" "--arch=$(dpkg-architecture -a"$architecture" -qDEB_HOST_GNU_CPU 2>/dev/null)" \
		--target-os=linux --pkg-config=pkg-config
fi
# shellcheck disable=SC2086 # several package names
apt-get install -y --no-install-recommends $compiler "libx264-dev:$architecture" "libdav1d-dev:$architecture" \
	"libzimg-dev:$architecture" "zlib1g-dev:$architecture" "libvpx-dev:$architecture" "libheif-examples:$architecture"
triplet=$(dpkg-architecture -a"$architecture" -qDEB_HOST_MULTIARCH 2>/dev/null)
export PKG_CONFIG_LIBDIR="/usr/lib/$triplet/pkgconfig:/usr/share/pkgconfig"

work=$(mktemp -d)
cd "$work"
apt-get source ffmpeg
cd ffmpeg-*/
version=$(dpkg-parsechangelog --show-field Version)
configure() {
	./configure --prefix=/usr --extra-version="${version#*-}" "$@" \
		--extra-cflags='-fPIE -fstack-protector-strong -D_FORTIFY_SOURCE=2' --extra-ldexeflags='-pie -Wl,-z,relro,-z,now' --enable-pic \
		--disable-debug --disable-doc --disable-autodetect --disable-network --disable-ffplay --disable-avdevice --disable-postproc \
		--disable-hwaccels --disable-bsfs --disable-decoders --disable-encoders --disable-muxers --disable-demuxers --disable-protocols --disable-filters \
		--enable-gpl --enable-zlib --enable-libx264 --enable-libdav1d --enable-libvpx --enable-libzimg \
		--enable-protocol=file,pipe --enable-filter="$filters" --enable-demuxer="$demuxers" --enable-muxer="$muxers" \
		--enable-decoder="$decoders" --enable-encoder="$encoders"
}
configure "$@" || { tail -n 30 ffbuild/config.log >&2; exit 1; }
make -j"$(nproc)" ffmpeg ffprobe >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }

mkdir -p "$out/usr/bin" "$out/usr/lib/$triplet" "$out/var/lib/dpkg/status.d"
cp ffmpeg ffprobe "$out/usr/bin/"
mkdir -p "$out/usr/share/doc/ffmpeg"
cp debian/copyright "$out/usr/share/doc/ffmpeg/"
# The license of the programs requires that the sources and the build instructions come with them.
{
	echo "FFmpeg of Debian's source package ffmpeg $version (apt-get source ffmpeg=$version), configured with"
	sed -n 's/^#define FFMPEG_CONFIGURATION //p' config.h
} >"$out/usr/share/doc/ffmpeg/SOURCE"
printf 'Package: ffmpeg\nStatus: install ok installed\nArchitecture: %s\nVersion: %s\nDescription: FFmpeg of the sources of Debian, with what Cutroom uses\n' \
	"$architecture" "$version" >"$out/var/lib/dpkg/status.d/ffmpeg"

# bring LIBRARY copies a library, its package metadata, and all libraries that it needs.
bring() {
	[ ! -e "$out/usr/lib/$triplet/$1" ] || return 0
	for path in "/usr/lib/$triplet/$1" "/lib/$triplet/$1"; do
		[ ! -e "$path" ] || break
	done
	file=$(realpath "$path")
	cp "$file" "$out/usr/lib/$triplet/$1"
	package=$(dpkg --search "$file" "${file#/usr}" 2>/dev/null | sed -n '1s/: .*//p')
	dpkg-query --status "$package" >"$out/var/lib/dpkg/status.d/${package%:*}"
	mkdir -p "$out/usr/share/doc/${package%:*}"
	cp "/usr/share/doc/${package%:*}/copyright" "$out/usr/share/doc/${package%:*}/"
	keep "$file"
}

# keep FILE copies all libraries that a program or library is linked against.
keep() {
	for library in $(readelf --dynamic "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
		bring "$library"
	done
}
# Programs that serve live video load libvpx by these names; programs that sign load libc2pa_c.
for library in libvpx.so.7 libdl.so.2 libpthread.so.0 libgcc_s.so.1 libm.so.6; do
	bring "$library"
done
keep ffmpeg
keep ffprobe
# heif-convert comes from Debian's package.
cp /usr/bin/heif-convert "$out/usr/bin/"
dpkg-query --status "libheif-examples:$architecture" >"$out/var/lib/dpkg/status.d/libheif-examples"
mkdir -p "$out/usr/share/doc/libheif-examples"
cp /usr/share/doc/libheif-examples/copyright "$out/usr/share/doc/libheif-examples/"
keep /usr/bin/heif-convert
# The programs contain the path of the dynamic linker.
linker=$(readelf --program-headers ffmpeg | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
mkdir -p "$out$(dirname "$linker")"
[ -e "$out$linker" ] || cp "$(realpath "$(command -v "$linker" || echo "/usr/lib/$triplet/$(basename "$linker")")")" "$out$linker"
strip="strip"
[ "$architecture" = "$here" ] || strip=$gnu-strip
"$strip" "$out/usr/bin/ffmpeg" "$out/usr/bin/ffprobe"
rm -rf "$work"
