import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Guard } from '../guards/guard.ts'

/** A copy of the project as it is now, with what is not committed yet. Mutations happen only there. */
export type Tree = {
  root: string
  remove(): void
}

export function copyTree(root: string): Tree {
  const copy = mkdtempSync(join(tmpdir(), 'ipn-guards-'))
  // Other users run Postgres and some of the programs.
  chmodSync(copy, 0o755)
  const listed = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 ** 2,
  })
  const files = listed.split('\0').filter((file) => file !== '' && existsSync(join(root, file)))
  for (const file of files) cpSync(join(root, file), join(copy, file))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return { root: copy, remove: () => rmSync(copy, { recursive: true, force: true }) }
}

/** Counts how often the row's text occurs; undefined if there is no such file. */
export function countOccurrences(root: string, { file, text }: Guard): number | undefined {
  const path = join(root, file)
  return existsSync(path) ? readFileSync(path, 'utf8').split(text).length - 1 : undefined
}

/**
 * Writes mutations into the copy, of one file or of several.
 * @returns a function that puts the files back
 */
export function mutate(root: string, guards: readonly Guard[]): () => void {
  const files = [...new Set(guards.map(({ file }) => file))].map((file) => {
    const path = join(root, file)
    const original = readFileSync(path, 'utf8')
    const rows = guards.filter((guard) => guard.file === file)
    return { path, original, mutated: replaceTexts(original, rows) }
  })
  for (const { path, mutated } of files) writeFileSync(path, mutated)
  return () => {
    for (const { path, original } of files) writeFileSync(path, original)
  }
}

/** From the last one to the first, so that the places of those before stay. */
function replaceTexts(original: string, guards: readonly Guard[]): string {
  const places = guards.map((guard) => ({ ...guard, at: original.indexOf(guard.text) }))
  return places
    .sort((a, b) => b.at - a.at)
    .reduce(
      (written, { at, text, mutation }) =>
        written.slice(0, at) + mutation + written.slice(at + text.length),
      original,
    )
}
