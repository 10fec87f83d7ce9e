#!/bin/sh
# check_colours.sh SOURCE: all colours of the window are in the theme, so that both themes have them and a contrast can be
# looked up in one place.
found=$(cd "$1" && grep -nE 'QColor\((0x|"#|[0-9])|\bQt::(white|black|red|green|blue|cyan|magenta|yellow|(light|dark)?[gG]ray)\b|"#[0-9a-fA-F]{3,8}"|\b0x[0-9a-fA-F]{6}\b' \
  -r views --include='*.cpp' --include='*.h' | grep -v '^views/look/theme\.cpp')
[ -z "$found" ] && exit 0
echo "give Theme (views/look/theme.h) a colour for it:"
echo "$found"
exit 1
