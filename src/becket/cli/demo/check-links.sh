# Prints "file link" for every relative link in a Markdown file that leads nowhere; exit code 1 if there is one.
dead=$(
    find . -name '*.md' -not -path './.git/*' | sort | while read -r file; do
        grep -o '](\([^):#]*\))' "$file" | sed 's/^](//; s/)$//' | while read -r link; do
            [ -e "$(dirname "$file")/$link" ] || echo "$file $link"
        done
    done
)
[ -z "$dead" ] || { echo "$dead"; exit 1; }
