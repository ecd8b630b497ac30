import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { z } from 'zod'

/**
 * Makes a package of the compiled client in `dist/client`, for `npm pack` and `npm publish`; `npm run build` ends with it.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SOURCE = join(ROOT, 'src/client')

/** The name under which order systems install and import the client. */
export const CLIENT_PACKAGE = '@ipn-processor/client'

const Manifest = z.object({
  version: z.string(),
  license: z.string(),
  engines: z.object({ node: z.string() }),
})

/** What an import of a file may look like: `import … from`, `export … from`, `import`, `import()`, and references. */
const SPECIFIERS =
  /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)["']([^"']+)["']|<reference\s+\w+="([^"]+)"/g

/**
 * Writes package.json, README and licence into a folder with the compiled client, and removes what earlier builds
 * left there.
 * @param folder where `tsc -p tsconfig.build.json` compiled `src/client` to
 * @param repository where the source is; npm compares it with the repository that a provenance statement names
 * @throws Error if a file of the client, types included, imports anything but other files of the client
 */
export async function buildClient(folder: string, repository?: string): Promise<void> {
  const sources = (await readdir(SOURCE)).filter((file) => file.endsWith('.ts'))
  const outputs = sources.flatMap((file) =>
    ['.js', '.js.map', '.d.ts'].map((end) => file.replace(/\.ts$/, end)),
  )
  for (const file of await readdir(folder)) {
    if (!outputs.includes(file)) await rm(join(folder, file), { recursive: true })
  }
  const foreign = await findForeignImports(folder)
  if (foreign.length > 0) {
    throw new Error(`The client may import only its own files: ${foreign.join(', ')}`)
  }
  await copyFile(join(SOURCE, 'README.md'), join(folder, 'README.md'))
  await copyFile(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  const manifest = JSON.stringify(await describeClient(repository), null, 2)
  await writeFile(join(folder, 'package.json'), `${manifest}\n`)
}

async function findForeignImports(folder: string): Promise<string[]> {
  const files = (await readdir(folder)).filter((file) => /\.(js|d\.ts)$/.test(file))
  const found = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(folder, file), 'utf8')
      return [...text.matchAll(SPECIFIERS)]
        .map(([, imported, referenced]) => imported ?? referenced ?? '')
        .filter((specifier) => !/^\.\/[\w-]+\.[jt]s$/.test(specifier))
        .map((specifier) => `${file} imports ${specifier}`)
    }),
  )
  return found.flat()
}

async function describeClient(repository: string | undefined): Promise<object> {
  const text = await readFile(join(ROOT, 'package.json'), 'utf8')
  const { version, license, engines } = Manifest.parse(JSON.parse(text))
  return {
    name: CLIENT_PACKAGE,
    version,
    description:
      'Typed client of the IPN processor, without dependencies: payments, refunds, and every change in order',
    license,
    ...(repository && {
      repository: { type: 'git', url: `git+${repository}.git`, directory: 'src/client' },
    }),
    type: 'module',
    types: './entry.d.ts',
    exports: {
      '.': { types: './entry.d.ts', default: './entry.js' },
      './package.json': './package.json',
    },
    files: ['*.js', '*.js.map', '*.d.ts'],
    engines,
    sideEffects: false,
    // Published by .github/workflows/release.yml only: a statement of provenance needs the CI's identity.
    publishConfig: { access: 'public', provenance: true },
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env
  const repository = GITHUB_REPOSITORY && `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`
  await buildClient(join(ROOT, 'dist/client'), repository)
}
