const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
}

/** The text of HTML as a person reads it, on one line. */
export function readText(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(?:lt|gt|quot|#39|amp);/g, (one) => ENTITIES[one] ?? one)
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** The HTML of one live part of a page, up to the next. */
export function cutPart(html: string, name: string): string {
  const from = html.indexOf(`<div id="part-${name}"`)
  if (from === -1) throw new Error(`the page has no part ${name}`)
  const next = html.indexOf('<div id="part-', from + 1)
  return html.slice(from, next === -1 ? html.indexOf('</main>', from) : next)
}
