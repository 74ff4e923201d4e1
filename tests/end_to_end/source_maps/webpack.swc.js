const Terser = require('terser-webpack-plugin');
module.exports = { mode: 'production', target: 'node', devtool: 'source-map', entry: './src/main.ts', output: { path: __dirname + '/out-swc', filename: 'app.min.js' },
 resolve: { extensions: ['.ts', '.js'] }, module: { rules: [{ test: /\.(ts|js)$/, exclude: /node_modules/, use: { loader: 'swc-loader', options: { jsc: { target: 'es2020', parser: { syntax: 'typescript' } }, sourceMaps: true } } }] }, optimization: { minimizer: [new Terser({ minify: Terser.swcMinify })] } };
