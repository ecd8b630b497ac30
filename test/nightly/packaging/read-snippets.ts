import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Returns the snippets of a section of a page in `docs`, by default those in TypeScript. */
export async function readSnippets(
  page: string,
  title: string,
  language: 'ts' | 'sh' = 'ts',
): Promise<string[]> {
  const text = await readFile(join(ROOT, 'docs', page), 'utf8')
  const [, section = ''] = text.split(new RegExp(`\n##+ ${title}\n`))
  const [own = ''] = section.split(/\n##+ /)
  const blocks = own.matchAll(/```(\w+)\n(.*?)```/gs)
  return [...blocks].flatMap(([, name, code = '']) => (name === language ? [code] : []))
}
