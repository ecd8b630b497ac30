import { createHash } from 'node:crypto'
import { TOKEN_FIELD } from '../forms/protect-forms.ts'
import { StoryParts, type StoryProps } from './story-parts.tsx'

/** The parts of the page as HTML, and a tag that changes whenever a person sees something else. */
export type RenderedParts = { html: string; etag: string }

/** Each form has a token of its own, and differs although the page shows the same. */
const TOKENS = new RegExp(`name="${TOKEN_FIELD}" value="[^"]*"`, 'g')

/** Renders the parts of the page about a transaction. */
export async function renderParts(props: StoryProps): Promise<RenderedParts> {
  const html = String(await (<StoryParts {...props} />).toString())
  const digest = createHash('sha256').update(html.replaceAll(TOKENS, '')).digest('base64url')
  return { html, etag: `"${digest.slice(0, 22)}"` }
}
