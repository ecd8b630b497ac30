import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Returns the TypeScript snippets of a section of a page in `docs`. */
export async function readSnippets(page: string, title: string): Promise<string[]> {
  const text = await readFile(join(ROOT, 'docs', page), 'utf8')
  const [, section = ''] = text.split(new RegExp(`\n##+ ${title}\n`))
  const [own = ''] = section.split(/\n##+ /)
  return [...own.matchAll(/```ts\n(.*?)```/gs)].map(([, code = '']) => code)
}
