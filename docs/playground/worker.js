// Python and the broker's core, away from the page: the page stays quick, whatever the core does.
import { loadPyodide } from './pyodide/pyodide.mjs';

const ready = (async () => {
  const pyodide = await loadPyodide({ indexURL: new URL('./pyodide/', import.meta.url).href });
  const core = await fetch(new URL('./core.zip', import.meta.url));
  if (!core.ok) throw new Error(`core.zip: ${core.status}`);
  pyodide.unpackArchive(await core.arrayBuffer(), 'zip', { extractDir: '/core' });
  pyodide.runPython('import sys; sys.path.insert(0, "/core")');
  return pyodide.pyimport('simulation');
})();

onmessage = async ({ data: { id, asked } }) => {
  try {
    const simulation = await ready;
    postMessage({ id, told: JSON.parse(simulation.call(JSON.stringify(asked))) });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};
