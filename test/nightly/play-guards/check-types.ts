import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Guard } from '../guards/guard.ts'
import { mutate } from './tree.ts'

const ERROR = /^(\S+)\(\d+,\d+\): error .*$/gm

/**
 * Finds the rows whose mutation does not compile, with the first error of each.
 *
 * A pass of the compiler takes 30 s of CPU time, also an incremental one: a changed file is checked again with all that
 * import it. So a pass checks many rows at once, but never two of one function: there one mutation can hide the error of
 * another (a check that narrows a type, and the use of what it narrows). Elsewhere that would need two rows that change a
 * declared type and its use to match. When a pass has errors, the rows of the files that the errors name are checked
 * again one by one, and the others without them.
 */
export async function findTypeErrors(
  root: string,
  guards: readonly Guard[],
): Promise<Map<Guard, string>> {
  const found = new Map<Guard, string>()
  const passes = planPasses(root, guards)
  for (let pass = passes.shift(); pass !== undefined; pass = passes.shift()) {
    const errors = await compile(root, pass)
    const [first] = errors
    const [guard] = pass
    if (first === undefined || guard === undefined) continue
    if (pass.length === 1) found.set(guard, first.line)
    else passes.unshift(...splitPass(pass, new Set(errors.map(({ file }) => file))))
  }
  return found
}

/** Distributes the rows over as few passes as possible, with at most one row of a function in each. */
function planPasses(root: string, guards: readonly Guard[]): Guard[][] {
  const passes: Guard[][] = []
  const counts = new Map<string, number>()
  for (const guard of guards.filter(({ file }) => /\.tsx?$/.test(file))) {
    const place = `${guard.file}:${findFunction(readFileSync(join(root, guard.file), 'utf8'), guard.text)}`
    const n = counts.get(place) ?? 0
    counts.set(place, n + 1)
    passes[n] = [...(passes[n] ?? []), guard]
  }
  return passes
}

/** The line on which the function around the text begins: the last one before it that is not indented. */
function findFunction(source: string, text: string): number {
  const lines = source.slice(0, source.indexOf(text) + 1).split('\n')
  return lines.findLastIndex((line) => /^\w/.test(line))
}

function splitPass(pass: readonly Guard[], files: ReadonlySet<string>): Guard[][] {
  const named = pass.filter(({ file }) => files.has(file))
  const others = pass.filter(({ file }) => !files.has(file))
  if (named.length > 0) {
    return [...named.map((guard) => [guard]), ...(others.length > 0 ? [others] : [])]
  }
  // The error is in a file that imports a mutated one.
  const half = Math.ceil(pass.length / 2)
  return [pass.slice(0, half), pass.slice(half)]
}

async function compile(root: string, pass: readonly Guard[]) {
  const restore = mutate(root, pass)
  try {
    const output = await runCompiler(root)
    return [...output.matchAll(ERROR)].map(([line, file = '']) => ({ file, line }))
  } finally {
    restore()
  }
}

/** Resolves with what the compiler prints; that it found errors shows there. */
async function runCompiler(root: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      ['node_modules/typescript/bin/tsc', '--noEmit', '--pretty', 'false'],
      { cwd: root, maxBuffer: 64 * 1024 ** 2 },
      (error, stdout, stderr) => {
        if (error && !/: error /.test(stdout)) reject(new Error(`tsc failed: ${stdout}${stderr}`))
        else resolve(stdout)
      },
    )
  })
}
