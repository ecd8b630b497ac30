import { posix } from 'node:path'

/**
 * The import order: a folder or root file of `src` may import only from lower rows, which come first here, types
 * included. A folder that is in no row may import nothing.
 */
export const ROWS: readonly (readonly string[])[] = [
  ['errors', 'money', 'version'],
  ['platform'],
  ['metrics'],
  ['http'],
  ['config'],
  ['db'],
  ['accounts'],
  ['access', 'gateway'],
  ['context', 'sandbox'],
  ['events', 'health'],
  ['discrepancies', 'payments'],
  ['cards', 'search', 'transactions'],
  ['ipn', 'refunds'],
  ['decisions', 'sync'],
  ['feed'],
  ['webhooks'],
  ['maintenance'],
  ['console'],
  ['app', 'background', 'create-context'],
  ['service'],
  ['cli', 'demo'],
  ['start'],
  ['main'],
]

/** Folders that may be imported only by the ones listed, whatever their row. */
const PRIVATE = new Map([['sandbox', ['demo']]])

/** One import of a file by another, both relative to `src`. */
export type Import = { from: string; to: string }

const SPECIFIER = /(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'/g

/** Returns the imports of a file, including `import type` and `import()`. */
export function readImports(file: string, text: string): Import[] {
  return [...text.matchAll(SPECIFIER)].map(([, to = '']) => ({
    from: file,
    to: posix.join(posix.dirname(file), to),
  }))
}

/** Returns the top-level folder of a file, or, at the root, the file itself. */
export function nameRoom(file: string): string {
  return (file.split('/')[0] ?? '').replace(/\.tsx?$/, '')
}

/** Finds imports that do not go to a lower row. */
export function findUpward(imports: readonly Import[]): Import[] {
  const row = (room: string) => ROWS.findIndex((rooms) => rooms.includes(room))
  return imports.filter(({ from, to }) => {
    const [room, target] = [nameRoom(from), nameRoom(to)]
    if (room === target) return false
    if (PRIVATE.get(target)?.includes(room) === false) return true
    return row(room) === -1 || row(target) === -1 || row(target) >= row(room)
  })
}

/** Finds a cycle of files. */
export function findFileCycle(imports: readonly Import[]): string[] | undefined {
  return findCycle(imports)
}

/**
 * Finds a cycle between the entries of one folder, its files and subfolders. A subfolder counts as
 * one entry: what its files import counts as imported by all of it.
 */
export function findFolderCycle(imports: readonly Import[]): string[] | undefined {
  return findCycle(imports.flatMap(liftToCommonFolder))
}

/** Converts the import to one between two entries of the deepest folder that contains both files. */
function liftToCommonFolder({ from, to }: Import): Import[] {
  const [source, target] = [from.split('/'), to.split('/')]
  const shared = source.findIndex((part, index) => part !== target[index])
  if (shared === -1) return []
  const cut = (parts: string[]) => parts.slice(0, shared + 1).join('/')
  return [{ from: cut(source), to: cut(target) }]
}

function findCycle(imports: readonly Import[]): string[] | undefined {
  const next = new Map<string, Set<string>>()
  for (const { from, to } of imports) {
    next.set(from, (next.get(from) ?? new Set()).add(to))
  }
  const done = new Set<string>()
  const visit = (node: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node]
    if (done.has(node)) return undefined
    for (const to of next.get(node) ?? []) {
      const cycle = visit(to, [...path, node])
      if (cycle) return cycle
    }
    done.add(node)
    return undefined
  }
  for (const node of next.keys()) {
    const cycle = visit(node, [])
    if (cycle) return cycle
  }
  return undefined
}
