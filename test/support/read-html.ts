const ENTITIES: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" },
}

/** Decodes the entities that the pages' renderer writes. */
export const decode = (text: string): string =>
  text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name] ?? '')

/** The text of HTML as a person reads it, on one line. */
export const readText = (html: string): string =>
  decode(html.replaceAll(/<[^>]*>/g, ' '))
    .replaceAll(/\s+/g, ' ')
    .trim()

/** The HTML of one live part of a page, up to the next. */
export function cutPart(html: string, name: string): string {
  const from = html.indexOf(`<div id="part-${name}"`)
  if (from === -1) throw new Error(`the page has no part ${name}`)
  const next = html.indexOf('<div id="part-', from + 1)
  return html.slice(from, next === -1 ? html.indexOf('</main>', from) : next)
}
